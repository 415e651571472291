//! Files of every format, truncated and with flipped bytes: an answer or a refusal, never a panic, never much memory.

mod common;

use common::{allowed, peak};
use metastate_ingest::{As, InputSettings, Silent, read};

#[global_allocator]
static ALLOCATOR: common::Counting = common::Counting;

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n.max(1)
    }
}

fn settings_for(name: &str) -> InputSettings {
    let as_ = if name.starts_with("traj") { As::Trajectories } else { As::Counts };
    let where_ = name.contains("parquet").then(|| "EXTRACT(DAY FROM \"when\") = 1 OR \"from\" LIKE 's%'".to_owned());
    InputSettings { as_: Some(as_), where_, ..InputSettings::default() }
}

#[test]
fn damaged_files_never_panic() {
    let rounds: usize = std::env::var("METASTATE_MUTATIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(150);
    let dir = tempfile::tempdir().unwrap();
    let mut names: Vec<String> = std::fs::read_dir("tests/good").unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    // A decoder's panic becomes an error inside; its message would only clutter the output.
    std::panic::set_hook(Box::new(|_| ()));
    let (mut refused, mut accepted, mut worst) = (0, 0, (0, String::new()));
    for name in &names {
        let good = std::fs::read(format!("tests/good/{name}")).unwrap();
        let settings = settings_for(name);
        let path = dir.path().join(name);
        let run = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            peak(|| std::panic::catch_unwind(|| read(&[path.display().to_string()], &settings, &mut Silent).map(|_| ())))
        };
        let (whole, _) = run(&good);
        assert!(matches!(whole, Ok(Ok(()))), "{name} itself: {whole:?}");
        let mut random = Random(name.len() as u64);
        for round in 0..rounds {
            let mut bytes = good.clone();
            match round % 4 {
                0 => bytes.truncate(random.below(good.len())),
                1 => bytes[random.below(good.len())] ^= 1 << random.below(8),
                2 => (0..1 + random.below(8)).for_each(|_| bytes[random.below(good.len())] = random.below(256) as u8),
                _ => {
                    // Large numbers where sizes may stand.
                    let at = random.below(good.len());
                    bytes.iter_mut().skip(at).take(1 + random.below(8)).for_each(|b| *b = 0xff);
                }
            }
            let (result, cost) = run(&bytes);
            let case = format!("{name}, round {round}");
            let Ok(result) = result else {
                std::fs::write(std::env::temp_dir().join("metastate-panic.bin"), &bytes).unwrap();
                panic!("{case} panicked");
            };
            if cost > allowed(bytes.len() as u64) {
                std::fs::write(std::env::temp_dir().join("metastate-memory.bin"), &bytes).unwrap();
                panic!("{case} cost {cost} bytes");
            }
            if cost > worst.0 {
                worst = (cost, case);
            }
            if result.is_ok() { accepted += 1 } else { refused += 1 }
        }
    }
    let _ = std::panic::take_hook();
    println!("{refused} refused, {accepted} still readable; the worst ({}) cost {} bytes", worst.1, worst.0);
}
