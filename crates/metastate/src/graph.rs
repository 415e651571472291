//! Two walks over the graph of a chain: strongly connected classes, and peeling off states without exits.
//! Neither recurses: a path of a million states is ordinary data.

/// Strongly connected classes by Tarjan's algorithm. `next(i, cursor)` gives the successor of `i` at or after `cursor`
/// and the cursor behind it. Returns the class of each state and the number of classes; every edge between two
/// classes leads from the higher to the lower number.
pub(crate) fn strong_classes(d: usize, next: impl Fn(usize, usize) -> Option<(usize, usize)>) -> (Vec<u32>, usize) {
    const NEW: u32 = u32::MAX;
    let mut class = vec![NEW; d];
    let mut order = vec![NEW; d]; // when a state was first met
    let mut low = vec![0u32; d]; // earliest state known to be reachable and still open
    let mut open: Vec<u32> = Vec::new(); // states met whose class is not closed
    let mut path: Vec<(u32, usize)> = Vec::new(); // the walk's own stack: state and cursor
    let (mut clock, mut classes) = (0u32, 0usize);
    for root in 0..d {
        if order[root] != NEW {
            continue;
        }
        path.push((root as u32, 0));
        while let Some(&mut (i, ref mut cursor)) = path.last_mut() {
            let i = i as usize;
            if order[i] == NEW {
                order[i] = clock;
                low[i] = clock;
                clock += 1;
                open.push(i as u32);
            }
            if let Some((after, j)) = next(i, *cursor) {
                *cursor = after;
                if order[j] == NEW {
                    path.push((j as u32, 0));
                } else if class[j] == NEW {
                    low[i] = low[i].min(order[j]);
                }
                continue;
            }
            path.pop();
            if let Some(&(parent, _)) = path.last() {
                low[parent as usize] = low[parent as usize].min(low[i]);
            }
            if low[i] == order[i] {
                while let Some(j) = open.pop() {
                    class[j as usize] = classes as u32;
                    if j as usize == i {
                        break;
                    }
                }
                classes += 1;
            }
        }
    }
    (class, classes)
}

/// Takes away the states in `gone`, then every state that is left without exits, and so on. `exits[i]` is the number of
/// edges out of `i`; `for_each_source(j, f)` calls `f(i)` for every edge from i to j. A queue, so the whole costs one pass
/// over the edges however long the chain of consequences.
pub(crate) fn peel(gone: &mut [bool], mut exits: Vec<usize>, mut for_each_source: impl FnMut(usize, &mut dyn FnMut(usize))) {
    let mut queue: Vec<usize> = (0..gone.len()).filter(|&i| gone[i]).collect();
    while let Some(j) = queue.pop() {
        for_each_source(j, &mut |i| {
            exits[i] -= 1;
            if exits[i] == 0 && !gone[i] {
                gone[i] = true;
                queue.push(i);
            }
        });
    }
}
