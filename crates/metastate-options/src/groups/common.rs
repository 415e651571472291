//! Options of all commands, and of those that need few.

use std::path::PathBuf;

use crate::entry::{allowed, free};

options! {
    /// Options of all commands.
    Common, None, free, {
        /// Print one JSON document on standard output and nothing else there.
        json: bool = false => |e| e;
        /// Print no progress and no report. Errors are still printed.
        quiet: bool = false => |e| e;
        /// Number of threads to use. Without it, one for each core. The answer does not depend on it.
        threads: Option<usize> = None => |e| e.bounds(allowed::SOME);
        /// Seed of all random numbers: the same seed gives the same answer.
        seed: u64 = 0 => |e| e;
    }
}

options! {
    /// Where the demonstration goes.
    DemoArgs, None, free, {
        /// The result folder to write. Without it, the first free one of metastate-demo, metastate-demo-2, ...
        out: Option<PathBuf> = None => |e| e.value("DIR");
        /// Replace the folder if there is one already.
        force: bool = false => |e| e;
        /// Number of trips to simulate.
        trips: usize = 400_000 => |e| e;
    }
}

options! {
    /// What is explained.
    ExplainArgs, None, free, {
        /// The code, such as E-INGEST-COLUMN. Without one, all codes are listed.
        code: Option<String> = None => |e| e.value("CODE").positional();
    }
}

options! {
    /// Where the manual goes.
    ManArgs, None, free, {
        /// The folder to write, one page a command.
        folder: PathBuf = PathBuf::new() => |e| e.value("DIR").positional().required();
    }
}

options! {
    /// For which shell.
    CompletionsArgs, None, free, {
        /// The shell.
        shell: ShellKind = ShellKind::Bash => |e| e.value("SHELL").positional().required();
    }
}

words! {
    /// A shell that completions can be made for.
    ShellKind {
        /// Bash
        Bash,
        /// Elvish
        Elvish,
        /// Fish
        Fish,
        /// PowerShell
        Powershell,
        /// Z shell
        Zsh,
    }
}
