//! Which lines belong together: stack traces of some languages, or what a pattern says.
//!
//! The rules for Java, Python and Go know what traces look like: those that `detect_exceptions` (Fluentd) and Fluent Bit know by
//! the same names, and what newer versions of the languages print besides.

use std::sync::LazyLock;

use regex::bytes::Regex;

use crate::config::{JoinRule, LinePatterns};

/// Where in a record the last line was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Nothing more belongs to it.
    Ended,
    /// Anything may follow that does not begin a record.
    Open,
    JavaHead,
    JavaFrames,
    /// Behind "nested exception is:": the exception's name follows.
    JavaNested,
    PythonFrames,
    PythonCode,
    GoPanic,
    GoSignal,
    /// Before `goroutine 1 [running]:`
    GoBlank,
    /// A function, `created by`, or the end of a goroutine
    GoFunction,
    /// The file and line of that function
    GoFile,
}

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Belongs {
    /// To the record before it, which is there now.
    Before(Place),
    /// To a record that it begins.
    New(Place),
}

use Belongs::{Before, New};
use Place::{
    Ended, GoBlank, GoFile, GoFunction, GoPanic, GoSignal, JavaFrames, JavaHead, JavaNested, Open, PythonCode,
    PythonFrames,
};

/// What `line` is, behind a record at `place`; none where there is no record that could go on.
pub(crate) fn belongs(rule: &JoinRule, place: Option<Place>, line: &[u8]) -> Belongs {
    let place = place.filter(|place| *place != Ended);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    match rule {
        JoinRule::Java => java(place, line),
        JoinRule::Python => python(place, line),
        JoinRule::Go => go(place, line),
        JoinRule::Patterns(patterns) => by_patterns(patterns, place.is_some(), line),
    }
}

fn by_patterns(patterns: &LinePatterns, open: bool, line: &[u8]) -> Belongs {
    let matches = |pattern: &Option<Regex>| pattern.as_ref().map(|pattern| pattern.is_match(line));
    let after = if matches(&patterns.end) == Some(true) { Ended } else { Open };
    if matches(&patterns.start) == Some(true) {
        return New(after);
    }
    match matches(&patterns.goes_on) {
        Some(true) if open => Before(after),
        // Without a pattern for the beginning, any line may be one.
        Some(_) if patterns.start.is_none() => New(after),
        None if open => Before(after),
        None if patterns.start.is_none() => New(after),
        _ => New(Ended),
    }
}

/// Patterns of ours: each is one, as the tests show.
macro_rules! patterns {
    ($($name:ident = $text:expr;)*) => {
        $(static $name: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new($text).ok());)*
    };
}

patterns! {
    JAVA_HEAD = r"[^\s](?:Exception|Error|Throwable)(?::|$)|V8 errors stack trace";
    JAVA_NESTED = r"^\s*nested exception is:\s*";
    JAVA_FRAME = r"^\s+(?:eval )?at |^\s*\.\.\. \d+ (?:more|common frames omitted)|^\s+--- End of inner exception stack trace ---|^--- End of stack trace from previous location";
    JAVA_CAUSE = r"^\s*(?:Caused by|Suppressed|Wrapped by):|^\s+\[CIRCULAR REFERENCE";
    PYTHON_FRAME = "^[ \t]+File \"";
    PYTHON_MARK = r"^[ \t]+[~^]+[ \t~^]*$|^[ \t]+\[Previous line repeated ";
    PYTHON_END = r"^(?:[^\s.():]+\.)*[^\s.():]+(?::|$)";
    GO_PANIC = r"^(?:[^\s].*)?\b(?:panic|fatal error): ";
    GO_SERVING = r"http: panic serving";
    GO_GOROUTINE = r"^goroutine \d+ (?:gp=\S+ m=\S+ (?:mp=\S+ )?)?\[[^\]]+\]:$";
    GO_FUNCTION = r"^[^\s].*\(.*\)$|^created by |^\.\.\.(?:additional|\d+) ";
}

fn is(pattern: &Option<Regex>, line: &[u8]) -> bool {
    pattern.as_ref().is_some_and(|pattern| pattern.is_match(line))
}

fn java(place: Option<Place>, line: &[u8]) -> Belongs {
    let head = || is(&JAVA_HEAD, line);
    match place {
        Some(JavaNested) if head() => return Before(JavaHead),
        Some(JavaHead) if is(&JAVA_NESTED, line) => return Before(if head() { JavaHead } else { JavaNested }),
        Some(JavaHead) if line.is_empty() => return Before(JavaHead),
        Some(_) if is(&JAVA_FRAME, line) => return Before(JavaFrames),
        Some(_) if is(&JAVA_CAUSE, line) => return Before(JavaHead),
        _ => {}
    }
    New(if head() { JavaHead } else { Ended })
}

fn python(place: Option<Place>, line: &[u8]) -> Belongs {
    let blank = line.trim_ascii().is_empty();
    match place {
        Some(PythonCode) if !blank && !is(&PYTHON_FRAME, line) && line.starts_with(b" ") => {
            return Before(PythonFrames);
        }
        Some(PythonFrames | PythonCode) if is(&PYTHON_FRAME, line) => return Before(PythonCode),
        Some(PythonFrames) if is(&PYTHON_MARK, line) => return Before(PythonFrames),
        // The exception itself.
        Some(PythonFrames | PythonCode) if is(&PYTHON_END, line) => return Before(Ended),
        _ => {}
    }
    let begins = line == b"Traceback (most recent call last):";
    New(if begins { PythonFrames } else { Ended })
}

fn go(place: Option<Place>, line: &[u8]) -> Belongs {
    let blank = line.is_empty();
    match place {
        Some(GoPanic | GoSignal | GoFunction) if blank => return Before(GoBlank),
        Some(GoPanic) if line.starts_with(b"[signal ") => return Before(GoSignal),
        // A panic within a panic, and the value of one that has several lines.
        Some(GoPanic) if line.starts_with(b"\t") => return Before(GoPanic),
        Some(GoPanic | GoBlank | GoFunction) if is(&GO_GOROUTINE, line) => return Before(GoFunction),
        Some(GoFunction) if is(&GO_FUNCTION, line) => return Before(GoFile),
        Some(GoFile) if line.starts_with(b"\t") || line.starts_with(b" ") => return Before(GoFunction),
        Some(GoFunction | GoBlank) if line.starts_with(b"exit status ") => return Before(Ended),
        _ => {}
    }
    if is(&GO_SERVING, line) {
        return New(GoPanic);
    }
    New(if is(&GO_PANIC, line) { GoPanic } else { Ended })
}
