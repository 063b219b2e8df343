//! Globs over paths: which files a source follows, and in which directories new ones could appear.
//!
//! `*`, `?`, `[..]` and `{a,b}` match within one name; `**` alone in its place is any number of directories. As in a shell, a
//! name that begins with a dot is matched only where the pattern has the dot too, and `**` does not go through links.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

/// What a source looks for.
#[derive(Debug)]
pub(crate) struct Patterns {
    paths: Vec<Vec<Step>>,
    exclude: Vec<Exclude>,
}

/// One name of a pattern's path.
#[derive(Debug)]
enum Step {
    /// As it stands; also `/` at the beginning.
    Literal(PathBuf),
    /// Any name that matches.
    Glob { matcher: GlobMatcher, hidden: bool },
    /// `**`
    AnyDepth,
}

#[derive(Debug)]
enum Exclude {
    /// A pattern without `/`: of the file's name.
    Name(GlobMatcher),
    /// Of the whole path.
    Path(GlobMatcher),
}

/// What a look at the file system gave.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Paths that match and are not excluded, and whether each is a link. They need not be regular files.
    pub(crate) paths: BTreeMap<PathBuf, bool>,
    /// Directories whose change could change `paths`.
    pub(crate) directories: BTreeSet<PathBuf>,
    /// What could not be looked into.
    pub(crate) unreadable: Vec<(PathBuf, io::Error)>,
}

impl Patterns {
    /// Reads the patterns. Relative ones count from the working directory.
    ///
    /// # Errors
    /// The pattern that is not one, and why.
    pub(crate) fn new(paths: &[String], exclude: &[String]) -> Result<Self, (String, String)> {
        let working_directory = std::env::current_dir().map_err(|e| (".".to_owned(), e.to_string()))?;
        let mut patterns = Self { paths: Vec::new(), exclude: Vec::new() };
        for pattern in paths {
            patterns.paths.push(steps(&working_directory, pattern).map_err(|why| (pattern.clone(), why))?);
        }
        for pattern in exclude {
            let exclude = if pattern.contains('/') {
                matcher(&working_directory.join(pattern).to_string_lossy()).map(Exclude::Path)
            } else {
                matcher(pattern).map(Exclude::Name)
            };
            patterns.exclude.push(exclude.map_err(|why| (pattern.clone(), why))?);
        }
        Ok(patterns)
    }

    /// Looks at the file system.
    pub(crate) fn expand(&self) -> Found {
        let mut found = Found::default();
        for steps in &self.paths {
            walk(PathBuf::new(), steps, &mut found);
        }
        found.paths.retain(|path, _| !self.excludes(path));
        found
    }

    fn excludes(&self, path: &Path) -> bool {
        self.exclude.iter().any(|exclude| match exclude {
            Exclude::Name(matcher) => path.file_name().is_some_and(|name| matcher.is_match(name)),
            Exclude::Path(matcher) => matcher.is_match(path),
        })
    }
}

fn matcher(pattern: &str) -> Result<GlobMatcher, String> {
    let glob = GlobBuilder::new(pattern).literal_separator(true).backslash_escape(true).build();
    glob.map(|glob| glob.compile_matcher()).map_err(|e| e.kind().to_string())
}

fn steps(working_directory: &Path, pattern: &str) -> Result<Vec<Step>, String> {
    if pattern.is_empty() {
        return Err("it is empty".to_owned());
    }
    let base = if pattern.starts_with('/') { Path::new("/") } else { working_directory };
    let mut steps = vec![Step::Literal(base.to_owned())];
    for name in pattern.split('/').filter(|name| !name.is_empty() && *name != ".") {
        steps.push(if name == "**" {
            Step::AnyDepth
        } else if name.contains(['*', '?', '[', ']', '{', '}', '\\']) {
            let matcher = matcher(name).map_err(|why| format!("{name:?}: {why} (a group cannot hold a '/')"))?;
            Step::Glob { matcher, hidden: name.starts_with('.') }
        } else {
            Step::Literal(name.into())
        });
    }
    if matches!(steps.last(), Some(Step::AnyDepth)) {
        steps.push(Step::Glob { matcher: matcher("*")?, hidden: false });
    }
    Ok(steps)
}

/// Goes on from `at`, which exists as far as anybody knows, by the steps that are left.
fn walk(at: PathBuf, steps: &[Step], found: &mut Found) {
    let Some((step, rest)) = steps.split_first() else {
        // A literal last step: there is a file, or there is not.
        match fs::symlink_metadata(&at) {
            Ok(metadata) => drop(found.paths.insert(at, metadata.is_symlink())),
            Err(e) if is_absence(&e) => {}
            Err(e) => found.unreadable.push((at, e)),
        }
        return;
    };
    match step {
        Step::Literal(name) => {
            // What is missing may come: watch the last directory that is there.
            let next = at.join(name);
            if !at.as_os_str().is_empty() && (rest.is_empty() || !next.is_dir()) && at.is_dir() {
                found.directories.insert(at);
            }
            walk(next, rest, found);
        }
        Step::Glob { matcher, hidden } => {
            for (name, path, is_directory) in entries(&at, found) {
                let dotted = name.as_encoded_bytes().starts_with(b".");
                if (dotted && !hidden) || !matcher.is_match(&name) {
                    continue;
                }
                if rest.is_empty() {
                    if is_directory != Some(true) {
                        // Of a link, what it is a link to is not known; and of some entries nothing is.
                        found.paths.insert(path, is_directory.is_none());
                    }
                } else if is_directory != Some(false) {
                    walk(path, rest, found);
                }
            }
        }
        Step::AnyDepth => {
            walk(at.clone(), rest, found);
            for (name, path, is_directory) in entries(&at, found) {
                if is_directory == Some(true) && !name.as_encoded_bytes().starts_with(b".") {
                    walk(path, steps, found);
                }
            }
        }
    }
}

/// The entries of a directory; whether each is a directory is not known of links.
fn entries(directory: &Path, found: &mut Found) -> Vec<(std::ffi::OsString, PathBuf, Option<bool>)> {
    let listing = match fs::read_dir(directory) {
        Ok(listing) => listing,
        Err(e) => {
            if !is_absence(&e) {
                found.unreadable.push((directory.to_owned(), e));
            }
            return Vec::new();
        }
    };
    found.directories.insert(directory.to_owned());
    let mut entries = Vec::new();
    for entry in listing {
        match entry {
            Ok(entry) => {
                let kind = entry.file_type().ok().filter(|kind| !kind.is_symlink()).map(|kind| kind.is_dir());
                entries.push((entry.file_name(), entry.path(), kind));
            }
            Err(e) => {
                found.unreadable.push((directory.to_owned(), e));
                break;
            }
        }
    }
    entries
}

/// Nothing is there: no fault, it may come.
pub(crate) fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for file in files {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        root
    }

    fn matching(root: &tempfile::TempDir, paths: &[&str], exclude: &[&str]) -> Vec<String> {
        let below = |pattern: &&str| {
            if pattern.contains('/') { format!("{}/{pattern}", root.path().display()) } else { (*pattern).to_owned() }
        };
        let paths: Vec<String> = paths.iter().map(|p| format!("{}/{p}", root.path().display())).collect();
        let exclude: Vec<String> = exclude.iter().map(below).collect();
        let found = Patterns::new(&paths, &exclude).unwrap().expand();
        found.paths.keys().map(|p| p.strip_prefix(root.path()).unwrap().display().to_string()).collect()
    }

    #[test]
    fn a_star_stays_within_one_name() {
        let root = tree(&["a.log", "b.log", "b.txt", "d/c.log", ".h.log"]);
        assert_eq!(matching(&root, &["*.log"], &[]), ["a.log", "b.log"]);
        assert_eq!(matching(&root, &["*/*.log"], &[]), ["d/c.log"]);
        assert_eq!(matching(&root, &["?.log", "[bc].*"], &[]), ["a.log", "b.log", "b.txt"]);
        assert_eq!(matching(&root, &["{a,b}.{log,txt}"], &[]), ["a.log", "b.log", "b.txt"]);
        assert_eq!(matching(&root, &[".h*"], &[]), [".h.log"]);
        assert_eq!(matching(&root, &["a.log", "none.log"], &[]), ["a.log"]);
    }

    #[test]
    fn two_stars_are_any_depth_and_none() {
        let root = tree(&["x.log", "d/x.log", "d/e/f/x.log", "d/e/y.log", ".git/x.log"]);
        assert_eq!(matching(&root, &["**/x.log"], &[]), ["d/e/f/x.log", "d/x.log", "x.log"]);
        assert_eq!(matching(&root, &["d/**"], &[]), ["d/e/f/x.log", "d/e/y.log", "d/x.log"]);
    }

    #[test]
    fn an_exclusion_without_a_slash_is_of_the_name_and_with_one_of_the_path() {
        let root = tree(&["x.log", "x.log.gz", "d/x.log", "d/x.log.gz"]);
        assert_eq!(matching(&root, &["**/x*"], &["*.gz"]), ["d/x.log", "x.log"]);
        assert_eq!(matching(&root, &["**/x*"], &["d/*"]), ["x.log", "x.log.gz"]);
    }

    #[test]
    fn a_loop_of_links_ends() {
        let root = tree(&["d/x.log"]);
        std::os::unix::fs::symlink(root.path(), root.path().join("d/up")).unwrap();
        assert_eq!(matching(&root, &["**/*.log"], &[]), ["d/x.log"]);
        assert_eq!(matching(&root, &["d/up/d/*.log"], &[]), ["d/up/d/x.log"]);
    }

    #[test]
    fn the_directories_to_watch_are_those_where_a_match_could_appear() {
        let root = tree(&["d/x.log", "e/y.log"]);
        let pattern = |p: &str| format!("{}/{p}", root.path().display());
        let directories = |p: &str| -> Vec<String> {
            let found = Patterns::new(&[pattern(p)], &[]).unwrap().expand();
            found.directories.iter().map(|p| p.strip_prefix(root.path()).unwrap().display().to_string()).collect()
        };
        assert_eq!(directories("*/x.log"), ["", "d", "e"]);
        assert_eq!(directories("d/*.log"), ["d"]);
        assert_eq!(directories("d/x.log"), ["d"]);
        assert_eq!(directories("later/sub/*.log"), [""]);
    }

    #[test]
    fn a_pattern_that_is_none_is_named_with_the_reason() {
        let (pattern, why) = Patterns::new(&["/var/log/[".to_owned()], &[]).unwrap_err();
        assert_eq!(pattern, "/var/log/[");
        assert!(why.contains("unclosed character class"), "{why}");
        assert!(Patterns::new(&["/a/{b,c/d}".to_owned()], &[]).is_err());
        assert!(Patterns::new(&[String::new()], &[]).is_err());
    }
}
