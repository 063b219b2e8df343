//! What is wrong in a configuration, and where.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::confines::Confines;

/// A place in the file. Lines and columns count from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Line.
    pub line: usize,
    /// Column.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// One thing wrong. Shown as `wharf.yaml:12:5: outputs.archive: unknown key "bukcet"; did you mean "bucket"?`, with the
/// remedy on a line of its own where there is one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// The file, as the operator named it.
    pub file: Arc<str>,
    /// Where in it; none where the file as a whole is meant.
    pub place: Option<Place>,
    /// The key, with dots: `outputs.archive.batch`. Empty for the whole file.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl Fault {
    /// A fault of a file as a whole.
    pub(crate) fn of_file(file: &str, message: String, help: Option<&str>) -> Self {
        Self { file: file.into(), place: None, path: String::new(), message, help: help.map(str::to_owned) }
    }

    /// Whether it lies in this section (`outputs.archive`) or in one below.
    #[must_use]
    pub fn is_in(&self, section: &str) -> bool {
        self.path.strip_prefix(section).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(place) = self.place {
            write!(f, ":{place}")?;
        }
        f.write_str(": ")?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, "\n    help: {help}"),
            None => Ok(()),
        }
    }
}

/// Every fault of a configuration, in the order of each file. There is at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults(Vec<Fault>);

impl Faults {
    /// Sorted by file and place, each once; none where there is no fault.
    #[must_use]
    pub fn of(mut faults: Vec<Fault>) -> Option<Self> {
        faults.sort_by(|a, b| (&a.file, a.place, &a.path, &a.message).cmp(&(&b.file, b.place, &b.path, &b.message)));
        faults.dedup();
        if faults.is_empty() { None } else { Some(Self(faults)) }
    }

    pub(crate) fn one(fault: Fault) -> Self {
        Self(vec![fault])
    }

    /// All of them.
    pub fn iter(&self) -> std::slice::Iter<'_, Fault> {
        self.0.iter()
    }

    /// How many.
    #[expect(clippy::len_without_is_empty, reason = "there is always at least one")]
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, fault) in self.0.iter().enumerate() {
            if n > 0 {
                f.write_str("\n")?;
            }
            fault.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}

impl IntoIterator for Faults {
    type Item = Fault;
    type IntoIter = std::vec::IntoIter<Fault>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// Collects faults of one file while it is read, so that one fault never hides the next.
#[derive(Debug)]
pub(crate) struct Sink {
    file: Arc<str>,
    faults: std::cell::RefCell<Vec<Fault>>,
    /// What the file may read, where it is not the operator's own.
    confines: Option<Confines>,
}

impl Sink {
    pub(crate) fn new(file: &str) -> Self {
        Self { file: file.into(), faults: std::cell::RefCell::default(), confines: None }
    }

    /// For a file that may not read everything.
    pub(crate) fn confined(file: &str, confines: Confines) -> Self {
        Self { confines: Some(confines), ..Self::new(file) }
    }

    /// What the file may read, where it is not the operator's own.
    pub(crate) fn confines(&self) -> Option<&Confines> {
        self.confines.as_ref()
    }

    /// Where a path that the file names leads.
    ///
    /// # Errors
    /// Where the file may not read what is there: what is wrong, and what to do.
    pub(crate) fn path(&self, written: &str) -> Result<PathBuf, (String, Option<String>)> {
        match &self.confines {
            None => Ok(written.into()),
            Some(confines) => confines.path(written),
        }
    }

    pub(crate) fn file(&self) -> &Arc<str> {
        &self.file
    }

    pub(crate) fn add(&self, place: Place, path: &str, message: impl Into<String>) {
        self.push(place, path, message.into(), None);
    }

    pub(crate) fn add_with_help(&self, place: Place, path: &str, message: impl Into<String>, help: impl Into<String>) {
        self.push(place, path, message.into(), Some(help.into()));
    }

    pub(crate) fn push(&self, place: Place, path: &str, message: String, help: Option<String>) {
        let fault = Fault { file: self.file.clone(), place: Some(place), path: path.to_owned(), message, help };
        self.faults.borrow_mut().push(fault);
    }

    /// Takes over what was found elsewhere.
    pub(crate) fn extend(&self, found: Vec<Fault>) {
        self.faults.borrow_mut().extend(found);
    }

    /// How many there are so far.
    pub(crate) fn len(&self) -> usize {
        self.faults.borrow().len()
    }

    pub(crate) fn into_vec(self) -> Vec<Fault> {
        self.faults.into_inner()
    }
}

/// `"a", "b" or "c"`.
pub(crate) fn choices<S: AsRef<str>>(names: &[S]) -> String {
    let quoted: Vec<String> = names.iter().map(|n| format!("\"{}\"", n.as_ref())).collect();
    match quoted.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

/// The known name that somebody most likely meant, if any is near enough to be worth a guess.
pub(crate) fn nearest<'a, S: AsRef<str>>(written: &str, known: &'a [S]) -> Option<&'a str> {
    let plain = |s: &str| s.to_lowercase().replace('-', "_");
    let written = plain(written);
    known
        .iter()
        .map(AsRef::as_ref)
        .map(|name| {
            let candidate = plain(name);
            let changes = strsim::damerau_levenshtein(&written, &candidate);
            // Half of a longer name may be written too much or too little: `bytes` for `max_bytes`.
            let inside = written.len() >= 4 && (candidate.contains(&written) || written.contains(&candidate));
            (changes, inside && candidate.len() >= 4, candidate.chars().count(), name)
        })
        .filter(|(changes, inside, length, _)| *changes <= (length / 3).max(1) || *inside)
        .min_by_key(|(changes, _, _, _)| *changes)
        .map(|(_, _, _, name)| name)
}
