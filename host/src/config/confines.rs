//! What a tenant's own file may read of the machine.
//!
//! A tenant's file may come from somebody else than the operator's configuration does: it is generated, or handed in and looked through. So
//! that a line nobody noticed cannot hand the operator's secrets to a tenant's destination, such a file reads only the environment variables
//! that are named after its tenant, and only files and components in its tenant's own folder.

use std::path::{Component, Path, PathBuf};

/// What one tenant's file may read.
#[derive(Debug, Clone)]
pub(crate) struct Confines {
    /// `TENANT_ACME__`
    prefix: String,
    /// The prefixes of the other tenants.
    others: Vec<String>,
    /// `DIR/acme`
    folder: PathBuf,
}

/// `TENANT_ACME_EU__` for `acme-eu`. The rest of a variable's name has no `__` and does not begin with `_`, so that a name has one tenant, whichever tenants
/// there are: the environment stays as it is when a tenant goes, and what was its own must not be another's then.
fn prefix(tenant: &str) -> String {
    format!("TENANT_{}__", tenant.to_ascii_uppercase().replace('-', "_"))
}

impl Confines {
    /// Those of `tenant` among all tenants that there are. `folder` is its own.
    pub(crate) fn new<'a>(tenant: &str, all: impl Iterator<Item = &'a str>, folder: PathBuf) -> Self {
        let others = all.filter(|other| *other != tenant).map(prefix).collect();
        Self { prefix: prefix(tenant), others, folder }
    }

    /// Why a variable may not be read, and what to do; none where it may.
    pub(crate) fn refuses_variable(&self, name: &str) -> Option<(String, Option<String>)> {
        let own = &self.prefix;
        let rest = name.strip_prefix(own.as_str()).unwrap_or_default();
        if rest.is_empty() || rest.starts_with('_') || rest.contains("__") {
            let message = format!(
                "the environment variable {name} is not this tenant's: its file may read those that begin with {own}"
            );
            let help = format!(
                "name it {own}…, with two _ behind the tenant's name and nowhere else, or write what it is for in the operator's own file"
            );
            return Some((message, Some(help)));
        }
        self.others.contains(own).then(|| {
            (
                format!("the environment variable {name} may be another tenant's, whose variables begin alike"),
                Some(
                    "name the tenants so that their variables begin differently: - and _ are the same there".to_owned(),
                ),
            )
        })
    }

    /// Where a path leads that the file names: into the tenant's own folder.
    ///
    /// # Errors
    /// Where it leads out of there.
    pub(crate) fn path(&self, written: &str) -> Result<PathBuf, (String, Option<String>)> {
        let path = Path::new(written);
        let stays = !path.components().any(|part| part == Component::ParentDir);
        let whole = self.folder.join(path);
        if stays && (path.is_relative() || path.starts_with(&self.folder)) && self.holds(&whole) {
            return Ok(whole);
        }
        Err((
            "leads out of the tenant's own folder, and its file may read nothing else".to_owned(),
            Some(format!("put it into {}, where its relative paths begin", self.folder.display())),
        ))
    }
}

impl Confines {
    /// Whether what is there lies in the folder once links are followed. What is not there leads nowhere.
    fn holds(&self, path: &Path) -> bool {
        match (path.canonicalize(), self.folder.canonicalize()) {
            (Ok(path), Ok(folder)) => path.starts_with(folder),
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_leads_out_of_the_folder_is_followed_and_refused() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("acme");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(dir.path().join("secret"), "x").unwrap();
        std::fs::write(folder.join("own"), "x").unwrap();
        std::os::unix::fs::symlink("../secret", folder.join("out")).unwrap();
        std::os::unix::fs::symlink("own", folder.join("in")).unwrap();
        std::os::unix::fs::symlink(dir.path(), folder.join("up")).unwrap();
        let acme = Confines::new("acme", ["acme"].into_iter(), folder);
        for (path, may) in [("own", true), ("in", true), ("out", false), ("up/secret", false), ("not-there", true)] {
            assert_eq!(acme.path(path).is_ok(), may, "{path}");
        }
    }

    fn acme() -> Confines {
        Confines::new("acme", ["acme", "acme-eu", "globex"].into_iter(), "/etc/wharf/tenants/acme".into())
    }

    #[test]
    fn a_tenants_file_reads_its_tenants_variables_and_no_others() {
        for (name, may) in [
            ("TENANT_ACME__TOKEN", true),
            ("TENANT_ACME__E", true),
            ("TENANT_ACME__EU_TOKEN", true),
            ("TENANT_ACME__", false),
            ("TENANT_ACME", false),
            ("TENANT_ACME_TOKEN", false),
            ("TENANT_ACME_EU__TOKEN", false),
            ("TENANT_ACME__EU__TOKEN", false),
            ("TENANT_ACME___TOKEN", false),
            ("TENANT_GLOBEX__TOKEN", false),
            ("tenant_acme__token", false),
            ("ACME__TOKEN", false),
            ("AWS_SECRET_ACCESS_KEY", false),
            ("HOME", false),
        ] {
            assert_eq!(acme().refuses_variable(name).is_none(), may, "{name}");
        }
    }

    /// Each variable has one tenant at most, whether the others are there or not: the environment outlives them.
    #[test]
    fn what_was_a_tenants_variable_is_nobody_elses_once_the_tenant_is_gone() {
        let tenants = ["acme", "acme-eu", "acme_", "acme--eu", "acme-eu-2", "a", "eu"];
        for owner in tenants {
            let variable = format!("{}TOKEN", prefix(owner));
            for tenant in tenants {
                let alone = Confines::new(tenant, [tenant].into_iter(), "/t".into());
                assert_eq!(alone.refuses_variable(&variable).is_none(), tenant == owner, "{tenant} reads {variable}");
            }
        }
    }

    #[test]
    fn tenants_whose_variables_could_not_be_told_apart_read_none() {
        let confines = Confines::new("a-b", ["a-b", "a_b"].into_iter(), "/t".into());
        assert!(confines.refuses_variable("TENANT_A_B__X").is_some());
    }

    #[test]
    fn paths_stay_in_the_tenants_own_folder() {
        for (written, leads_to) in [
            ("token", Some("/etc/wharf/tenants/acme/token")),
            ("./tls/key.pem", Some("/etc/wharf/tenants/acme/tls/key.pem")),
            ("/etc/wharf/tenants/acme/token", Some("/etc/wharf/tenants/acme/token")),
            ("/etc/wharf/tenants/acme2/token", None),
            ("/etc/wharf/tenants/acme/../globex/token", None),
            ("../globex/token", None),
            ("/etc/shadow", None),
            ("/proc/self/environ", None),
        ] {
            let found = acme().path(written).ok();
            assert_eq!(found.as_deref(), leads_to.map(Path::new), "{written}");
        }
    }
}
