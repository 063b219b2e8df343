//! How these programs speak to a person: headings, progress, colours where there is a terminal.

use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

fn paint(text: &str, code: &str) -> String {
    let plain = std::env::var_os("NO_COLOR").is_some() || !std::io::stdout().is_terminal();
    if plain { text.to_owned() } else { format!("\x1b[{code}m{text}\x1b[0m") }
}

/// Something good.
#[must_use]
pub fn good(text: &str) -> String {
    paint(text, "32")
}

/// Something bad.
#[must_use]
pub fn bad(text: &str) -> String {
    paint(text, "31;1")
}

/// Something to look at.
#[must_use]
pub fn strong(text: &str) -> String {
    paint(text, "1")
}

/// The heading of a step.
pub fn step(number: u32, of: u32, what: &str) {
    println!("{}", strong(&format!("[{number}/{of}] {what}")));
}

/// A bar towards `total`. Where there is no terminal, [`Progress`] prints a line now and then instead.
pub struct Progress {
    bar: ProgressBar,
    shown_quarter: u64,
    total: u64,
    what: String,
}

impl Progress {
    /// A bar from 0 to `total`; `what` is said once where there is no terminal.
    #[must_use]
    pub fn new(total: u64, what: &str) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let target = if terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(total), target);
        let style = ProgressStyle::with_template("  {bar:30.cyan/dim} {pos:>6}/{len} {elapsed:>4}  {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.enable_steady_tick(Duration::from_millis(120));
        if !terminal {
            println!("  {what} …");
        }
        Self { bar, shown_quarter: 0, total, what: what.to_owned() }
    }
    /// What is being done.
    pub fn message(&self, text: impl Into<String>) {
        self.bar.set_message(text.into());
    }
    /// How far it is.
    pub fn at(&mut self, position: u64) {
        self.bar.set_position(position.min(self.total));
        let quarter = (position * 4).checked_div(self.total).unwrap_or(4).min(4);
        if self.bar.is_hidden() && quarter > self.shown_quarter {
            self.shown_quarter = quarter;
            println!("  {}: {position} of {}", self.what, self.total);
        }
    }
    /// How far it is.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.bar.position()
    }
    /// Takes the bar away and says how it ended.
    pub fn done(self, text: &str) {
        self.bar.finish_and_clear();
        println!("  {text}");
    }
}

/// Bytes for a person.
#[must_use]
pub fn bytes(count: u64) -> String {
    match count {
        0..1_000 => format!("{count} B"),
        1_000..1_000_000 => format!("{:.1} KB", count as f64 / 1e3),
        _ => format!("{:.1} MB", count as f64 / 1e6),
    }
}
