//! How much memory there is: what the machine has, or the control group that the process runs in, whichever is less.

/// Where nothing can be told (no `/proc`), nothing is refused on its account.
const UNKNOWN: u64 = u64::MAX;

/// Bytes of memory that this process may use at most, as far as the operating system tells.
pub fn available_memory() -> u64 {
    machine().min(control_group()).min(own_limits())
}

/// What `ulimit` allows to this process: its addresses (`-v`) and its data (`-d`).
fn own_limits() -> u64 {
    let text = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let soft = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse::<u64>().ok());
    let limits = ["Max address space", "Max data size"].map(|name| soft(name).unwrap_or(UNKNOWN));
    limits[0].min(limits[1])
}

/// `MemTotal` of the machine. Not what is free at the moment: a refusal must not depend on what others do.
fn machine() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kibibytes = line.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kibibytes.map_or(UNKNOWN, |n| n.saturating_mul(1024))
}

/// The limit of the control group, of version 2 or 1. Groups are nested, so every one on the way up counts.
fn control_group() -> u64 {
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let number = |path: String| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let mut least = UNKNOWN;
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(kind), Some(group)) = (parts.next(), parts.next(), parts.next()) else { continue };
        let (root, file) = match kind {
            "" => ("/sys/fs/cgroup", "memory.max"),
            kind if kind.split(',').any(|k| k == "memory") => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => continue,
        };
        let mut group = std::path::Path::new(group);
        loop {
            let inside = group.to_string_lossy();
            least = least.min(number(format!("{root}/{}/{file}", inside.trim_start_matches('/'))).unwrap_or(UNKNOWN));
            match group.parent() {
                Some(parent) => group = parent,
                None => break,
            }
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_some_memory_and_not_more_than_the_machine_has() {
        let found = available_memory();
        assert!(found > 64 << 20 && found <= machine(), "{found}");
    }
}
