//! A campaign is done by a child process, case by case, so that one that aborts or hangs costs one case and is counted. The parent reads what the child says of
//! each case, and starts another child behind a case that it did not survive.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// A case may take this long before it counts as hanging.
const PATIENCE: Duration = Duration::from_secs(30);
/// The memory that any refusal may take, and so many times the file on top.
const REFUSAL: u64 = 64 << 20;
const TIMES_FILE: u64 = 4;

/// What became of one case.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// The kind that it is counted under, such as `exit 0` or `exit 2`.
    pub kind: String,
    /// What must not be: a panic, a file left behind, a result that fails. Empty when all is well.
    pub wrong: Vec<String>,
    /// Bytes of the file that was given, for the memory that a refusal may take; none where something was accepted.
    pub refused_file: Option<u64>,
}

/// What became of all of them.
#[derive(Debug, Default)]
pub struct Campaign {
    /// Cases by kind.
    pub kinds: BTreeMap<String, u64>,
    /// What must not be, with the number of its case.
    pub wrong: Vec<String>,
    /// The largest memory of a refusal, in bytes.
    pub most_memory: u64,
}

impl Campaign {
    /// All cases.
    pub fn cases(&self) -> u64 {
        self.kinds.values().sum()
    }
}

/// `VmHWM` or `VmRSS` of this process, in bytes.
fn memory(key: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(':'));
    line.and_then(|l| l.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// The child: does the cases and says one line each.
pub fn child(first: u64, last: u64, mut case: impl FnMut(u64) -> Outcome) {
    // A panic is counted by whoever catches it; its words would only clutter the output.
    if std::env::var_os("METASTATE_LOUD").is_none() {
        std::panic::set_hook(Box::new(|_| ()));
    }
    let base = memory("VmRSS");
    for number in first..last {
        println!("begin\t{number}");
        // Lets the high-water mark begin anew.
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        let mut outcome = case(number);
        let peak = memory("VmHWM").saturating_sub(base);
        let mut measured = 0;
        if let Some(file) = outcome.refused_file {
            measured = peak;
            if peak > REFUSAL + TIMES_FILE * file {
                outcome.wrong.push(format!("a refusal took {peak} bytes for a file of {file}"));
            }
        }
        let wrong = outcome.wrong.join(" | ").replace(['\t', '\n'], " ");
        println!("end\t{number}\t{}\t{measured}\t{wrong}", outcome.kind);
        let _ = std::io::stdout().flush();
    }
}

/// The parent: `arguments` and the numbers of the cases make a child of this same program.
pub fn parent(arguments: &[String], cases: u64) -> Campaign {
    let mut campaign = Campaign::default();
    let mut next = 0;
    while next < cases {
        let (at, why) = one_child(arguments, next, cases, &mut campaign);
        next = at;
        if let Some(why) = why {
            *campaign.kinds.entry(why.clone()).or_default() += 1;
            campaign.wrong.push(format!("case {next}: {why}"));
            next += 1;
        }
    }
    campaign
}

/// Hands back the next case to be done, and why the child did not survive it.
fn one_child(arguments: &[String], first: u64, last: u64, campaign: &mut Campaign) -> (u64, Option<String>) {
    let program = std::env::current_exe().unwrap_or_default();
    let spawned = Command::new(program)
        .args(["child", &first.to_string(), &last.to_string()])
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .stdin(Stdio::null())
        .spawn();
    let Ok(mut child) = spawned else { return (first, Some("no process".to_owned())) };
    let Some(out) = child.stdout.take() else { return (first, Some("no process".to_owned())) };
    let (send, lines) = mpsc::channel();
    std::thread::spawn(move || BufReader::new(out).lines().map_while(std::result::Result::ok).try_for_each(|line| send.send(line)));
    let mut at = first;
    loop {
        match lines.recv_timeout(PATIENCE) {
            Ok(line) => {
                let fields: Vec<&str> = line.split('\t').collect();
                match fields[..] {
                    ["begin", number] => at = number.parse().unwrap_or(at),
                    ["end", number, kind, memory, wrong] => {
                        *campaign.kinds.entry(kind.to_owned()).or_default() += 1;
                        campaign.most_memory = campaign.most_memory.max(memory.parse().unwrap_or(0));
                        if !wrong.is_empty() {
                            campaign.wrong.push(format!("case {number}: {wrong}"));
                        }
                        at = number.parse().unwrap_or(at) + 1;
                    }
                    // Whatever else was printed.
                    _ => {}
                }
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {
                let _ = child.kill();
                let _ = child.wait();
                return (at, Some("hang".to_owned()));
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                let status = child.wait();
                let fine = status.as_ref().is_ok_and(std::process::ExitStatus::success);
                return (at, (!fine && at < last).then(|| format!("abort ({})", status.map_or_else(|e| e.to_string(), |s| s.to_string()))));
            }
        }
    }
}
