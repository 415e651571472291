//! Progress on standard error: a bar or a spinner on a terminal, a plain line every half minute otherwise.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use metastate_tasks::progress::{Quiet, Reporter, Show};

/// Between two plain lines.
const PLAIN_INTERVAL: Duration = Duration::from_secs(30);
/// Between two changes of a bar.
const BAR_INTERVAL: Duration = Duration::from_millis(60);

/// Where several processes do one thing, the first of them tells.
static MUTE: AtomicBool = AtomicBool::new(false);

/// From now on this process says nothing.
pub fn mute() {
    MUTE.store(true, Ordering::Relaxed);
}

/// It speaks again.
pub fn unmute() {
    MUTE.store(false, Ordering::Relaxed);
}

/// A line on standard error. One that cannot be written (a full disk, a closed pipe) is no reason to end.
pub fn say(line: &str) {
    if MUTE.load(Ordering::Relaxed) {
        return;
    }
    let _ = writeln!(std::io::stderr(), "{}", harmless(line));
}

/// The text as a terminal may show it: labels come from strangers' files, and a control character could clear the screen, change its colours or hide what
/// stands there. Such characters are shown as `\u{1b}`; lines and tabs stay.
pub fn harmless(text: &str) -> String {
    let shown = |c: char| c == '\n' || c == '\t' || !(c.is_control() || BIDIRECTIONAL.contains(&c));
    if text.chars().all(shown) {
        return text.to_owned();
    }
    text.chars().flat_map(|c| if shown(c) { vec![c] } else { c.escape_unicode().collect() }).collect()
}

/// Characters that turn the direction of what follows.
const BIDIRECTIONAL: [char; 9] =
    ['\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}', '\u{202e}', '\u{2066}', '\u{2067}', '\u{2068}', '\u{2069}'];

/// A reporter, quiet or as the terminal allows, and the bar that it may draw: whoever ends the process must clear it.
pub fn reporter(quiet: bool) -> (Reporter, ProgressBar) {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
    let reporter = match (quiet, std::io::stderr().is_terminal()) {
        (true, _) => Reporter::new(Quiet),
        (false, true) => Reporter::new(Bar(bar.clone())),
        (false, false) => Reporter::new(Plain),
    };
    (reporter, bar)
}

/// A bar or a spinner.
#[derive(Debug)]
struct Bar(ProgressBar);

impl Show for Bar {
    fn interval(&self) -> Option<Duration> {
        Some(BAR_INTERVAL)
    }

    fn line(&self, line: &str) {
        self.0.suspend(|| say(line));
    }

    fn phase(&self, name: &'static str, total: Option<u64>) {
        let style = match total {
            Some(total) => {
                self.0.set_length(total);
                "{prefix:>10} [{bar:28}] {bytes}/{total_bytes} {bytes_per_sec}, ETA {eta}  {wide_msg}"
            }
            None => "{prefix:>10} {spinner} {elapsed}  {wide_msg}",
        };
        if let Ok(style) = ProgressStyle::with_template(style) {
            self.0.set_style(style.progress_chars("=> "));
        }
        self.0.set_draw_target(ProgressDrawTarget::stderr());
        self.0.reset();
        self.0.set_prefix(name);
        self.0.set_message("");
        if total.is_none() {
            self.0.enable_steady_tick(Duration::from_millis(100));
        } else {
            self.0.disable_steady_tick();
        }
    }

    fn step(&self, _: &'static str, text: &str, bytes: Option<(u64, u64)>) {
        if let Some((read, _)) = bytes {
            self.0.set_position(read);
        }
        self.0.set_message(text.to_owned());
    }

    fn clear(&self) {
        self.0.finish_and_clear();
    }
}

/// Lines, for a file or another program that reads standard error.
#[derive(Debug)]
struct Plain;

impl Show for Plain {
    fn interval(&self) -> Option<Duration> {
        Some(PLAIN_INTERVAL)
    }

    fn line(&self, line: &str) {
        say(line);
    }

    fn phase(&self, _: &'static str, _: Option<u64>) {}

    fn step(&self, phase: &'static str, text: &str, bytes: Option<(u64, u64)>) {
        match bytes {
            Some((read, total)) => say(&format!("{phase}: {read} of {total} bytes, {text}")),
            None => say(&format!("{phase}: {text}")),
        }
    }

    fn clear(&self) {}
}

#[cfg(test)]
mod tests {
    use super::harmless;

    #[test]
    fn control_characters_are_shown_and_do_nothing() {
        assert_eq!(harmless("a\tb\nc é 北"), "a\tb\nc é 北");
        assert_eq!(harmless("\u{1b}[2Jx\r\u{7}\u{9b}"), "\\u{1b}[2Jx\\u{d}\\u{7}\\u{9b}");
        assert_eq!(harmless("\u{202e}moc"), "\\u{202e}moc");
    }
}
