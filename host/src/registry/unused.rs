//! What was pulled once and nobody uses any more goes, when its time is over or there is too much of it.
//!
//! A component belongs to the manifest that names it, and so do tags and signatures: a manifest stays or goes, and all that belongs to no manifest that
//! stays goes with it. Those of the configuration that is at work always stay, and are marked as used each time; of the others the time of their
//! last use counts. Tags go first and components last, so that a stop in the middle leaves no tag behind that stands for nothing, and the next
//! time finishes what was begun.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::Reference;
use super::client::{Layer, MOST_MANIFEST};
use super::store::Store;

/// What was used less long ago than this stays, whatever the limits are: it may be about to take over.
const FRESH: Duration = Duration::from_secs(3600);

/// How much of what nobody uses is kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Keep {
    /// For so long after its last use.
    pub(super) age: Duration,
    /// At most so many bytes; what was used last stays.
    pub(super) bytes: u64,
}

/// What was removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Removed {
    /// Files, tags and signatures counted.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A manifest in the store.
struct Manifest {
    digest: String,
    path: PathBuf,
    component: String,
    used: SystemTime,
}

impl Store {
    /// Removes what none of `in_use` needs and `keep` does not cover at `now`.
    ///
    /// # Errors
    /// Where the folder cannot be read. What cannot be removed stays for the next time, and is told.
    pub(super) fn remove_unused(&self, in_use: &[Reference], keep: Keep, now: SystemTime) -> io::Result<Removed> {
        if !self.dir().is_dir() {
            return Ok(Removed::default());
        }
        let _lock = self.lock()?;
        let blobs = files(&self.dir().join("blobs"))?;
        let manifests: Vec<Manifest> = blobs.iter().filter_map(|(path, used)| manifest(path, *used)).collect();
        let live: HashSet<String> = in_use
            .iter()
            .filter_map(|reference| reference.digest().map(str::to_owned).or_else(|| self.tagged(reference)))
            .collect();
        for manifest in manifests.iter().filter(|manifest| live.contains(&manifest.digest)) {
            // Failing only makes it go sooner once nobody uses it.
            let _ = touch(&manifest.path, now);
        }
        let stay = stay(manifests, &live, keep, now, |component| self.blob_bytes(component));
        let mut removed = Removed::default();
        for (path, _) in files(&self.dir().join("tags"))? {
            let stands_for = fs::read(&path).ok().and_then(|text| serde_json::from_slice::<Value>(&text).ok());
            let digest = stands_for.as_ref().and_then(|row| row.get("digest")?.as_str());
            if !digest.is_some_and(|digest| stay.contains_key(digest)) {
                removed.remove(&path);
            }
        }
        let names = |digest: &String| digest.trim_start_matches("sha256:").to_owned();
        let stays: HashSet<String> = stay.keys().map(names).collect();
        let components: HashSet<String> = stay.values().map(names).collect();
        let is_in = |path: &Path, these: &HashSet<String>| {
            path.file_name().and_then(|name| name.to_str()).is_some_and(|name| these.contains(name))
        };
        for (path, _) in files(&self.dir().join("signatures"))? {
            if !is_in(&path, &stays) {
                removed.remove(&path);
            }
        }
        // Manifests before what they name.
        let (first, last): (Vec<_>, Vec<_>) = blobs.iter().partition(|(path, used)| manifest(path, *used).is_some());
        for (path, _) in first.into_iter().chain(last) {
            if !is_in(path, &stays) && !is_in(path, &components) {
                removed.remove(path);
            }
        }
        Ok(removed)
    }
}

/// Manifests that stay, with the components that they name.
fn stay(
    manifests: Vec<Manifest>,
    live: &HashSet<String>,
    keep: Keep,
    now: SystemTime,
    bytes_of: impl Fn(&str) -> u64,
) -> HashMap<String, String> {
    let (used, mut unused): (Vec<_>, Vec<_>) = manifests.into_iter().partition(|it| live.contains(&it.digest));
    let mut stay: HashMap<String, String> = used.into_iter().map(|it| (it.digest, it.component)).collect();
    let mut components: HashSet<String> = stay.values().cloned().collect();
    unused.sort_by(|a, b| (b.used, &a.digest).cmp(&(a.used, &b.digest)));
    let mut bytes: u64 = 0;
    for manifest in unused {
        // Of a time that is yet to come nothing is known but that it is not past.
        let age = now.duration_since(manifest.used).unwrap_or_default();
        let more = if components.contains(&manifest.component) { 0 } else { bytes_of(&manifest.component) };
        let fits = bytes.saturating_add(more) <= keep.bytes;
        if age < FRESH || (age < keep.age && fits) {
            bytes = bytes.saturating_add(more);
            components.insert(manifest.component.clone());
            stay.insert(manifest.digest, manifest.component);
        }
    }
    stay
}

/// The file, where it is a manifest that names one component. Components are not read: none begins like JSON.
fn manifest(path: &Path, used: SystemTime) -> Option<Manifest> {
    let name = path.file_name()?.to_str()?;
    let mut bytes = vec![0];
    let mut file = File::open(path).ok()?;
    file.read_exact(&mut bytes).ok()?;
    if bytes != *b"{" {
        return None;
    }
    file.take(MOST_MANIFEST).read_to_end(&mut bytes).ok()?;
    let component = Layer::of(&bytes).ok()?.digest;
    Some(Manifest { digest: format!("sha256:{name}"), path: path.to_owned(), component, used })
}

/// The files of a folder, with the time of their last use. Empty where there is none.
fn files(dir: &Path) -> io::Result<Vec<(PathBuf, SystemTime)>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(vec![]),
        Err(cause) => return Err(cause),
    };
    let mut files = vec![];
    for entry in entries {
        let path = entry?.path();
        let metadata = fs::symlink_metadata(&path)?;
        if metadata.is_file() {
            files.push((path, metadata.modified()?));
        }
    }
    Ok(files)
}

pub(super) fn touch(path: &Path, now: SystemTime) -> io::Result<()> {
    File::open(path)?.set_modified(now)
}

impl Removed {
    fn remove(&mut self, path: &Path) {
        let bytes = fs::symlink_metadata(path).map_or(0, |metadata| metadata.len());
        match fs::remove_file(path) {
            Ok(()) => {
                self.files += 1;
                self.bytes += bytes;
            }
            Err(cause) => {
                tracing::warn!(file = %path.display(), %cause, "what no output uses any more could not be removed")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use sha2::{Digest as _, Sha256};

    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 3600);
    const KEEP: Keep = Keep { age: Duration::from_secs(30 * 24 * 3600), bytes: 1 << 30 };

    struct Place {
        dir: tempfile::TempDir,
        now: SystemTime,
    }

    fn digest(bytes: &[u8]) -> String {
        format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
    }

    fn reference(tag: &str) -> Reference {
        Reference::parse(&format!("oci://r.example/own:{tag}")).unwrap()
    }

    impl Place {
        fn new() -> Self {
            Self { dir: tempfile::tempdir().unwrap(), now: SystemTime::now() }
        }

        fn store(&self) -> Store {
            Store::at(&self.dir.path().join("oci"))
        }

        /// A component that was pulled under a tag and used last so many days ago. Gives its manifest's digest.
        fn pulled(&self, tag: &str, component: &[u8], days: u32) -> String {
            let store = self.store();
            let named =
                json!({ "mediaType": "application/wasm", "digest": digest(component), "size": component.len() });
            let config =
                json!({ "mediaType": "application/vnd.wasm.config.v0+json", "digest": digest(b"{}"), "size": 2 });
            let manifest =
                json!({ "schemaVersion": 2, "annotations": { "tag": tag }, "config": config, "layers": [named] })
                    .to_string();
            let name = digest(manifest.as_bytes());
            store.keep_blob(&digest(component), component).unwrap();
            store.keep_blob(&name, manifest.as_bytes()).unwrap();
            store.keep_signed(&name, &[]).unwrap();
            store.keep_tag(&reference(tag), &name).unwrap();
            touch(&self.blob(&name), self.now - DAY * days).unwrap();
            name
        }

        fn blob(&self, digest: &str) -> PathBuf {
            self.dir.path().join("oci/blobs").join(&digest[7..])
        }

        fn remove_unused(&self, in_use: &[&str], keep: Keep) -> Removed {
            let in_use: Vec<_> = in_use.iter().map(|tag| reference(tag)).collect();
            self.store().remove_unused(&in_use, keep, self.now).unwrap()
        }

        /// Whether all of it is there: without a registry, the next start finds it.
        fn is_whole(&self, tag: &str, component: &[u8]) -> bool {
            let store = self.store();
            let manifest = store.tagged(&reference(tag)).and_then(|digest| store.blob(&digest, MOST_MANIFEST));
            let layer = manifest.and_then(|manifest| Layer::of(&manifest).ok());
            layer.and_then(|layer| store.blob(&layer.digest, 1 << 20)).is_some_and(|bytes| bytes == component)
        }

        /// Every file but the lock.
        fn files(&self) -> usize {
            ["blobs", "tags", "signatures"]
                .iter()
                .map(|folder| files(&self.dir.path().join("oci").join(folder)).unwrap().len())
                .sum()
        }
    }

    #[test]
    fn what_no_output_uses_goes_when_its_time_is_over_and_what_one_uses_never() {
        let place = Place::new();
        place.pulled("live", b"live", 400);
        place.pulled("old", b"an old one", 31);
        place.pulled("back", b"the one before", 29);
        let removed = place.remove_unused(&["live"], KEEP);
        assert!(place.is_whole("live", b"live") && place.is_whole("back", b"the one before"));
        assert_eq!((place.is_whole("old", b"an old one"), removed.files, place.files()), (false, 4, 8));
        assert!(removed.bytes > 10);
        assert_eq!(place.remove_unused(&["live"], KEEP), Removed::default(), "once");
        // It was in use until now, so its time begins now.
        assert_eq!(place.remove_unused(&[], KEEP), Removed::default());
        assert!(place.is_whole("live", b"live"));
    }

    #[test]
    fn a_component_that_two_manifests_name_stays_as_long_as_one_of_them_and_a_digest_is_as_good_as_a_tag() {
        let place = Place::new();
        place.pulled("1", b"the same", 100);
        let digest = place.pulled("2", b"the same", 100);
        let pinned = Reference::parse(&format!("oci://r.example/own@{digest}")).unwrap();
        place.store().remove_unused(&[pinned], KEEP, place.now).unwrap();
        assert!(place.is_whole("2", b"the same") && !place.is_whole("1", b"the same"));
        assert_eq!(place.files(), 4);
    }

    /// A tag that moved: what it stood for before is used by nobody, and is there for a step back until its time is over.
    #[test]
    fn what_a_tag_stood_for_before_goes_by_its_own_time() {
        let place = Place::new();
        let before = place.pulled("1", b"before", 20);
        place.pulled("1", b"after", 20);
        place.remove_unused(&["1"], KEEP);
        assert!(place.blob(&before).exists() && place.is_whole("1", b"after"));
        let later = Place { now: place.now + DAY * 11, ..place };
        later.remove_unused(&["1"], KEEP);
        assert!(!later.blob(&before).exists() && !later.blob(&digest(b"before")).exists());
        assert!(later.is_whole("1", b"after"));
    }

    #[test]
    fn of_too_much_the_least_recently_used_go_and_what_was_used_in_the_last_hour_stays() {
        let place = Place::new();
        place.pulled("live", &[1; 5000], 9);
        place.pulled("a", &[2; 600], 3);
        place.pulled("b", &[3; 600], 2);
        place.pulled("c", &[4; 600], 1);
        place.pulled("now", &[5; 600], 0);
        let whole = || ["live", "a", "b", "c", "now"].map(|tag| place.store().tagged(&reference(tag)).is_some());
        place.remove_unused(&["live"], Keep { bytes: 1900, ..KEEP });
        assert_eq!(whole(), [true, false, true, true, true]);
        place.remove_unused(&["live"], Keep { bytes: 0, age: Duration::ZERO });
        assert_eq!(whole(), [true, false, false, false, true]);
    }

    /// Each stop is one that a crash could make: the files that are there then are a beginning of the removals.
    #[test]
    fn a_stop_in_the_middle_leaves_no_tag_that_stands_for_nothing_and_the_next_time_ends_it() {
        for stop in 0..4 {
            let place = Place::new();
            let old = place.pulled("old", b"an old one", 31);
            place.pulled("live", b"live", 31);
            let tags = || files(&place.dir.path().join("oci/tags")).unwrap();
            let tag =
                tags().into_iter().find(|(path, _)| fs::read_to_string(path).unwrap().contains(":old")).unwrap().0;
            let signatures = place.dir.path().join("oci/signatures").join(&old[7..]);
            for path in [tag, signatures, place.blob(&old), place.blob(&digest(b"an old one"))].iter().take(stop) {
                fs::remove_file(path).unwrap();
            }
            assert!(stop == 0 || place.store().tagged(&reference("old")).is_none());
            place.remove_unused(&["live"], KEEP);
            assert_eq!((place.files(), place.is_whole("live", b"live")), (4, true), "after {stop}");
        }
    }

    #[test]
    fn what_belongs_to_nothing_goes_and_where_nothing_was_pulled_nothing_is_made() {
        let place = Place::new();
        assert_eq!(place.remove_unused(&["live"], KEEP), Removed::default());
        assert!(!place.dir.path().join("oci").exists());
        place.pulled("live", b"live", 0);
        // A pull that ended before its manifest was there, a file that was not whole yet, and one that is no manifest.
        place.store().keep_blob(&digest(b"half"), b"half").unwrap();
        place.store().keep_blob(&digest(b"{ no manifest"), b"{ no manifest").unwrap();
        fs::write(place.dir.path().join("oci/blobs/.new-x"), "half").unwrap();
        place.remove_unused(&["live"], KEEP);
        assert_eq!((place.files(), place.is_whole("live", b"live")), (4, true));
    }
}
