//! Files whose change asks for a reload: looked at once a second, by what they are now behind their names. So a file that is written anew, one
//! that is renamed over it, and the symbolic links that Kubernetes swaps for a ConfigMap are all the same here.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use crate::config::{Config, SourceKind};
use crate::plugin::PluginSource;

use super::reload::Door;

/// How often.
const EVERY: Duration = Duration::from_secs(1);

/// What is looked at. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Watched {
    /// None: nothing.
    paths: Arc<Mutex<Option<BTreeSet<PathBuf>>>>,
}

impl Watched {
    /// From now on these: the file, and what the configurations name. Nothing where the first of them does not want it.
    pub(super) fn set(&self, file: &Path, configs: &[&Config]) {
        let wanted = configs.first().is_some_and(|config| config.watch);
        let paths =
            wanted.then(|| configs.iter().flat_map(|config| paths_of(config)).chain([file.to_owned()]).collect());
        *self.paths.lock().unwrap_or_else(PoisonError::into_inner) = paths;
    }

    /// An eye that knows what is there now: what changes from here on is a change.
    pub(super) fn eye(&self) -> Eye {
        let mut eye = Eye::default();
        if let Some(paths) = self.get() {
            eye.sees_change(&paths);
        }
        eye
    }

    fn get(&self) -> Option<BTreeSet<PathBuf>> {
        self.paths.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Every file and folder that a configuration is made of, but for its own file. Of a folder, what lies in it counts.
fn paths_of(config: &Config) -> Vec<PathBuf> {
    let mut paths = vec![];
    for output in &config.outputs {
        match &output.plugin_source {
            PluginSource::BuiltIn(_) | PluginSource::Registry(_) => {}
            PluginSource::File(path) => paths.push(path.clone()),
            PluginSource::Named { name, dirs } => paths.extend(dirs.iter().map(|dir| dir.join(format!("{name}.wasm")))),
        }
    }
    paths.extend(config.outputs.iter().filter_map(|output| output.signature.clone()));
    paths.extend(config.tenants_dir.clone());
    for source in &config.sources {
        let tls = match &source.kind {
            SourceKind::Forward(forward) => forward.tls.as_ref(),
            SourceKind::Otlp(otlp) => otlp.tls.as_ref(),
            SourceKind::Syslog(syslog) => syslog.tls.as_ref(),
            _ => None,
        };
        if let Some(tls) = tls {
            paths.extend([tls.cert_file.clone(), tls.key_file.clone()]);
            paths.extend(tls.client_ca_file.clone());
        }
    }
    paths
}

/// What a file is, as cheaply as it can be told; none where it is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

type Look = Vec<(PathBuf, Option<Stamp>)>;

fn look(paths: &BTreeSet<PathBuf>) -> Look {
    let mut seen = vec![];
    for path in paths {
        let metadata = std::fs::metadata(path).ok();
        let is_folder = metadata.as_ref().is_some_and(std::fs::Metadata::is_dir);
        seen.push((path.clone(), metadata.as_ref().map(stamp)));
        if is_folder {
            let mut entries: Vec<PathBuf> =
                std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
            entries.sort();
            let stamped = |entry: PathBuf| {
                let stamp = std::fs::metadata(&entry).ok().as_ref().map(stamp);
                (entry, stamp)
            };
            seen.extend(entries.into_iter().map(stamped));
        }
    }
    seen
}

fn stamp(metadata: &std::fs::Metadata) -> Stamp {
    Stamp {
        device: metadata.dev(),
        inode: metadata.ino(),
        bytes: metadata.len(),
        changed: (metadata.mtime(), metadata.mtime_nsec()),
    }
}

/// One digest of all that was seen.
fn digest(seen: &Look) -> [u8; 32] {
    let mut digest = Sha256::new();
    for (path, _) in seen {
        digest.update(path.as_os_str().as_encoded_bytes());
        match std::fs::read(path) {
            Ok(bytes) => {
                digest.update([1]);
                digest.update((bytes.len() as u64).to_le_bytes());
                digest.update(bytes);
            }
            Err(_) => digest.update([0]),
        }
    }
    digest.finalize().into()
}

/// What was seen, and when that is a change: not before it has been the same twice, since a file may be half written.
#[derive(Debug, Default)]
pub(super) struct Eye {
    last: Look,
    /// What was last reported, or seen first.
    known: Option<(Look, [u8; 32])>,
}

impl Eye {
    /// Whether something has another content than it had, and is done with changing.
    fn sees_change(&mut self, paths: &BTreeSet<PathBuf>) -> bool {
        let now = look(paths);
        let settled = now == self.last;
        self.last = now.clone();
        match &mut self.known {
            None => {
                let digest = digest(&now);
                self.known = Some((now, digest));
                false
            }
            Some((seen, _)) if *seen == now => false,
            Some(_) if !settled => false,
            Some((seen, known)) => {
                let paths_are_others = seen.len() != now.len() || seen.iter().zip(&now).any(|(a, b)| a.0 != b.0);
                let content = digest(&now);
                let changed = content != *known;
                // Where only the list is another, that is another configuration's doing.
                let reports = changed && !(paths_are_others && same_where_both(seen, &now));
                (*seen, *known) = (now, content);
                reports
            }
        }
    }
}

/// Whether what is in both looks is the same there.
fn same_where_both(a: &Look, b: &Look) -> bool {
    a.iter().all(|(path, stamp)| b.iter().find(|(other, _)| other == path).is_none_or(|(_, other)| other == stamp))
}

/// Looks until it is told to stop, and asks for a reload at each change.
pub(super) async fn run(watched: Watched, mut eye: Eye, door: Door, stop: CancellationToken) {
    while stop.run_until_cancelled(tokio::time::sleep(EVERY)).await.is_some() {
        let Some(paths) = watched.get() else {
            eye = Eye::default();
            continue;
        };
        let looked = tokio::task::spawn_blocking(move || {
            let changed = eye.sees_change(&paths);
            (eye, changed)
        });
        let Ok((back, changed)) = looked.await else { return };
        eye = back;
        if changed {
            stop.run_until_cancelled(door.wait_for(super::reload::WATCH)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(eye: &mut Eye, paths: &BTreeSet<PathBuf>) -> usize {
        (0..3).filter(|_| eye.sees_change(paths)).count()
    }

    #[test]
    fn a_change_is_told_once_however_it_comes_and_never_before_it_has_settled() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("wharf.yaml");
        std::fs::write(&file, "one").unwrap();
        let paths = BTreeSet::from([file.clone()]);
        let mut eye = Eye::default();
        assert_eq!(changes(&mut eye, &paths), 0, "the first look is none");

        std::fs::write(&file, "another").unwrap();
        assert!(!eye.sees_change(&paths), "it may be half written");
        assert_eq!(changes(&mut eye, &paths), 1);

        std::fs::write(dir.path().join("new"), "a third").unwrap();
        std::fs::rename(dir.path().join("new"), &file).unwrap();
        assert_eq!(changes(&mut eye, &paths), 1, "renamed over it");

        std::fs::write(dir.path().join("new"), "a third").unwrap();
        std::fs::rename(dir.path().join("new"), &file).unwrap();
        assert_eq!(changes(&mut eye, &paths), 0, "the same content is no change");

        std::fs::remove_file(&file).unwrap();
        assert_eq!(changes(&mut eye, &paths), 1, "it is gone");
    }

    /// As the kubelet does it: the file is a link through `..data`, which is a link to a folder, and that link is renamed over.
    #[test]
    fn the_links_of_a_config_map_are_followed() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for (folder, text) in [("..1", "one"), ("..2", "two")] {
            std::fs::create_dir(at(folder)).unwrap();
            std::fs::write(at(folder).join("wharf.yaml"), text).unwrap();
        }
        symlink("..1", at("..data")).unwrap();
        symlink("..data/wharf.yaml", at("wharf.yaml")).unwrap();
        let paths = BTreeSet::from([at("wharf.yaml")]);
        let mut eye = Eye::default();
        assert_eq!(changes(&mut eye, &paths), 0);
        symlink("..2", at("..data_tmp")).unwrap();
        std::fs::rename(at("..data_tmp"), at("..data")).unwrap();
        assert_eq!(changes(&mut eye, &paths), 1);
    }

    #[test]
    fn a_file_that_comes_into_a_folder_is_a_change() {
        let dir = tempfile::tempdir().unwrap();
        let paths = BTreeSet::from([dir.path().to_owned()]);
        let mut eye = Eye::default();
        assert_eq!(changes(&mut eye, &paths), 0);
        std::fs::write(dir.path().join("acme.yaml"), "x").unwrap();
        assert_eq!(changes(&mut eye, &paths), 1);
        std::fs::write(dir.path().join("acme.yaml"), "y").unwrap();
        assert_eq!(changes(&mut eye, &paths), 1);
    }

    #[test]
    fn another_list_of_files_is_no_change_of_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        std::fs::write(&a, "a").unwrap();
        std::fs::write(&b, "b").unwrap();
        let mut eye = Eye::default();
        assert_eq!(changes(&mut eye, &BTreeSet::from([a.clone()])), 0);
        let both = BTreeSet::from([a, b.clone()]);
        assert_eq!(changes(&mut eye, &both), 0);
        std::fs::write(b, "c").unwrap();
        assert_eq!(changes(&mut eye, &both), 1);
    }
}
