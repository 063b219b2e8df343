//! Reads `tenants`, `tenants_dir` and `tenant_defaults`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::aws::Aws;
use super::confines::Confines;
use super::fault::{Fault, Place, Sink};
use super::http;
use super::load::text_of;
use super::model::{OutputConfig, TenantConfig, TenantLimits};
use super::node::{Node, Value};
use super::outputs::{self, Components};
use super::reader::{Elsewhere, Section};
use super::{sources, tenant_limits, yaml};

const ELSEWHERE: Elsewhere = &[
    ("name", "the tenant's name is its key under \"tenants\", or its file's name"),
    ("weight", "did you mean \"share\"?"),
    ("tag", "did you mean \"tags\"?"),
    ("match", "did you mean \"tags\"? An output's tags belong to the output"),
    ("quota", "did you mean \"limits\"?"),
    ("quotas", "did you mean \"limits\"?"),
    ("tokens", "they belong to a source of type http: sources.NAME.tokens"),
    ("role_arn", "it belongs under \"aws\""),
    ("external_id", "it belongs under \"aws\""),
    ("grants", "they belong to an output: outputs.NAME.grants"),
    ("data_dir", "there is one for all tenants, at the top level"),
    ("journal", "there is one for all tenants, at the top level; a tenant's part of it is limits.journal"),
    ("http", "how requests are sent is one for all tenants, at the top level"),
    ("plugins", "it is one for all tenants, at the top level"),
    ("tenants", "a tenant has no tenants of its own"),
];

/// Tenants, and what is theirs.
#[derive(Default)]
pub(crate) struct Tenants {
    pub tenants: Vec<TenantConfig>,
    pub sources: Vec<sources::Read>,
    pub outputs: Vec<OutputConfig>,
    /// The directory of tenants' files.
    pub dir: Option<PathBuf>,
    /// There may be more: something could not be read.
    pub is_open: bool,
}

/// What tenants are read with.
#[derive(Clone, Copy)]
pub(crate) struct Around<'a> {
    /// What each tenant's `aws` is read over.
    pub aws: &'a Aws,
    pub components: Components<'a>,
    /// The environment.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
}

/// `archive`, or `acme/archive` of a tenant.
pub(crate) fn full_name(tenant: Option<&str>, name: &str) -> Arc<str> {
    match tenant {
        None => name.into(),
        Some(tenant) => format!("{tenant}/{name}").into(),
    }
}

/// Whether there may be tenants: then the operator needs no sources and outputs of his own.
pub(crate) fn may_be_in(top: &Section<'_>) -> bool {
    top.is_written("tenants") || top.is_written("tenants_dir")
}

/// Every tenant of the file, in its order, and then those of the directory by name.
pub(crate) fn read(top: &mut Section<'_>, around: Around<'_>) -> Tenants {
    let mut all = Tenants { is_open: top.is_open(), ..Tenants::default() };
    let limits = top.section("tenant_defaults").map(tenant_limits::defaults).unwrap_or_default();
    let section = top.section("tenants");
    all.is_open |= section.as_ref().map_or(top.is_written("tenants"), Section::is_open);
    all.dir = top.text("tenants_dir").map(|dir| around.components.folder.join(dir));
    let files = match &all.dir {
        Some(dir) => files(dir, top),
        None => Some(vec![]),
    };
    all.is_open |= files.is_none() || (all.dir.is_none() && top.is_written("tenants_dir"));
    let files = files.unwrap_or_default();
    let inline = section.as_ref().map_or(&[][..], Section::entries);
    for entry in inline {
        let Some(section) = &section else { break };
        sources::name(section, &entry.key, entry.key_at, "tenant");
        if entry.key == crate::dead_letter::REPLAY_FOLDER {
            section.sink().add(entry.key_at, section.path(), format!("the name {:?} is Wharf's own", entry.key));
        }
        let path = section.path_of(&entry.key);
        match Section::of(section.sink(), path, entry.key_at, &entry.value) {
            Some(tenant) => one(tenant, &entry.key, &limits, around, &mut all),
            None => all.is_open = true,
        }
    }
    let names: Vec<&str> =
        inline.iter().map(|entry| entry.key.as_str()).chain(files.iter().map(|file| file.tenant.as_str())).collect();
    for file in &files {
        if let Some(entry) = inline.iter().find(|entry| entry.key == file.tenant) {
            let there = format!("{}:{}", top.sink().file(), entry.key_at);
            let message = format!("there is a tenant {:?} in {there} as well", file.tenant);
            let help = Some("keep one of both: a tenant is in the configuration or has a file");
            top.sink().extend(vec![Fault::of_file(&file.shown(), message, help)]);
            continue;
        }
        of_file(top.sink(), file, &names, &limits, around, &mut all);
    }
    claimed_once(top.sink(), &mut all);
    all
}

/// One tenant, whose keys are those of `section`.
fn one(mut section: Section<'_>, name: &str, limits: &TenantLimits, around: Around<'_>, all: &mut Tenants) {
    let share = section.count("share", 1..=1000).and_then(|n| u32::try_from(n).ok()).unwrap_or(1);
    let tags = section.words("tags").unwrap_or_default();
    let own_limits = section.section("limits").map(|section| tenant_limits::read(section, limits));
    let limits = own_limits.unwrap_or(*limits);
    let (aws, own_identity) = identity(&mut section, name, around.aws);
    let credentials = http::credentials(&mut section);
    let plugin_limits = super::limits::of_tenant(&mut section, around.components.limits);
    let components = Components { limits: &plugin_limits, ..around.components };
    let sources = sources::read(&mut section, Some(name));
    let outputs = outputs::read(&mut section, Some(name), &aws, &credentials, components);
    within(&section, &limits, sources.len(), &outputs);
    let tags_at = section.place_of("tags");
    let file = section.sink().file().clone();
    let trusted_keys = super::trust::trusted_keys(&mut section, around.components.folder);
    section.finish(ELSEWHERE);
    all.sources.extend(sources);
    all.outputs.extend(outputs);
    all.tenants.push(TenantConfig {
        name: name.into(),
        share,
        tags,
        tags_at,
        limits,
        aws: aws.config,
        own_identity,
        credentials: credentials.whole,
        trusted_keys,
        file,
    });
}

/// Who a tenant's outputs are to AWS, and whether that is somebody of the tenant's own.
///
/// A role or profile of the tenant's stands alone: it is not assumed on the way to the operator's role, and the external id that was
/// written for another role does not go with it.
fn identity(section: &mut Section<'_>, name: &str, common: &Aws) -> (Aws, bool) {
    let mut own_role = false;
    let mut own_identity = false;
    let own = section.section("aws").map(|block| {
        own_role = block.is_written("role_arn");
        own_identity = own_role || block.is_written("profile");
        let below = if own_identity { &common.without_role() } else { common };
        super::aws::read(block, below)
    });
    let mut aws = own.unwrap_or_else(|| common.clone());
    if own_role && aws.config.role_arn.is_some() && aws.config.session_name.is_none() {
        // So that CloudTrail tells tenants apart. STS takes 64 characters.
        aws.config.session_name = Some(format!("wharf-{name}").chars().take(64).collect());
    }
    (aws, own_identity)
}

/// What a tenant has of what is counted.
fn within(section: &Section<'_>, limits: &TenantLimits, sources: usize, outputs: &[OutputConfig]) {
    let workers: u64 = outputs.iter().map(|output| u64::from(output.workers)).sum();
    for (key, what, has, most) in [
        ("sources", "sources", sources as u64, limits.sources),
        ("outputs", "outputs", outputs.len() as u64, limits.outputs),
        ("outputs", "workers", workers, limits.workers),
    ] {
        if let Some(most) = most.filter(|most| has > *most) {
            let message = format!("the tenant has {has} {what}, and may have {most} (limits.{what})");
            section.fault(
                key,
                message,
                Some("take some out, or raise the tenant's limit, or that of tenant_defaults".into()),
            );
        }
    }
}

/// The same glob twice: only the first tenant's would ever count.
fn claimed_once(sink: &Sink, all: &mut Tenants) {
    let mut faults = vec![];
    for (n, tenant) in all.tenants.iter().enumerate() {
        for tag in &tenant.tags {
            let first = all.tenants.iter().take(n).find(|other| other.tags.contains(tag));
            if let Some(first) = first {
                faults.push(Fault {
                    file: tenant.file.clone(),
                    place: Some(tenant.tags_at),
                    path: format!("tenants.{}.tags", tenant.name),
                    message: format!("tenant {} has the tag {tag:?} already, and records have one tenant", first.name),
                    help: None,
                });
            }
        }
    }
    sink.extend(faults);
}

/// The file of a tenant.
pub(crate) struct TenantFile {
    pub tenant: String,
    pub path: PathBuf,
}

impl TenantFile {
    fn shown(&self) -> String {
        self.path.display().to_string()
    }

    /// The tenant's own folder, beside its file.
    fn folder(&self) -> PathBuf {
        self.path.with_extension("")
    }
}

/// The tenants' files in a directory, by name. None where it cannot be read, which is told.
fn files(dir: &Path, top: &Section<'_>) -> Option<Vec<TenantFile>> {
    match list(dir) {
        Ok((files, faults)) => {
            top.sink().extend(faults);
            Some(files)
        }
        Err(cause) => {
            let shown =
                if top.is_hidden("tenants_dir") { top.found("tenants_dir") } else { format!("{:?}", dir.display()) };
            let help = "a relative path begins at the configuration file's folder; the user that runs Wharf has to be able to read it";
            top.fault("tenants_dir", format!("{shown} cannot be read: {cause}"), Some(help.into()));
            None
        }
    }
}

/// `NAME.yaml` is a tenant. What begins with a dot is passed over, since Kubernetes puts its own there and editors theirs; so are folders,
/// where tenants' secrets and components are, and files of other kinds. What was most likely meant as a tenant is a fault.
pub(crate) fn list(dir: &Path) -> std::io::Result<(Vec<TenantFile>, Vec<Fault>)> {
    let (mut files, mut faults) = (vec![], vec![]);
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        // Links are followed: Kubernetes keeps what is mounted behind one.
        if name.starts_with('.') || path.is_dir() {
            continue;
        }
        if std::fs::metadata(&path).is_ok_and(|it| !it.is_file()) {
            let message = "is neither a file nor a folder".to_owned();
            faults.push(Fault::of_file(&path.display().to_string(), message, Some("take it out of tenants_dir")));
            continue;
        }
        match name.rsplit_once('.') {
            Some((tenant, "yaml")) => files.push(TenantFile { tenant: tenant.to_owned(), path }),
            Some((tenant, end)) if ["yml", "yaml", "json"].iter().any(|known| end.eq_ignore_ascii_case(known)) => {
                let message = "is no tenant's file: their names end with .yaml".to_owned();
                faults.push(Fault::of_file(
                    &path.display().to_string(),
                    message,
                    Some(&format!("name it {tenant}.yaml")),
                ));
            }
            _ => {}
        }
    }
    files.sort_by(|a, b| a.tenant.cmp(&b.tenant));
    Ok((files, faults))
}

/// The tenant of one file. What is wrong with it is told with its own name.
fn of_file(
    sink: &Sink,
    file: &TenantFile,
    names: &[&str],
    limits: &TenantLimits,
    around: Around<'_>,
    all: &mut Tenants,
) {
    let confines = Confines::new(&file.tenant, names.iter().copied(), file.folder());
    let own = Sink::confined(&file.shown(), confines);
    let start = Place { line: 1, column: 1 };
    let name_is_good = sources::is_name(&file.tenant) && file.tenant != crate::dead_letter::REPLAY_FOLDER;
    if !name_is_good {
        let message = format!("{:?} cannot be the name of a tenant", super::node::shortened(&file.tenant));
        let help = "names have 1 to 64 of the characters a-z, 0-9, _ and -; \"replay\" is Wharf's own";
        own.extend(vec![Fault::of_file(&file.shown(), message, Some(help))]);
    }
    let folder = file.folder();
    let around = Around { components: Components { folder: &folder, ..around.components }, ..around };
    match text_of(&file.path) {
        Err(fault) => {
            own.extend(vec![fault]);
            all.is_open = true;
        }
        Ok(text) => {
            let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
            let root = yaml::read(text, &own, around.variable);
            let empty = Node { at: start, value: Value::Map(vec![]) };
            // Of an empty file, what is missing is told as of any other.
            let root = match root {
                Some(root) if !root.is_empty() => Some(root),
                Some(_) => Some(empty),
                None if own.len() == 0 => Some(empty),
                None => None,
            };
            let section =
                root.as_ref().and_then(|root| Section::of(&own, format!("tenants.{}", file.tenant), start, root));
            match section {
                Some(section) if name_is_good => one(section, &file.tenant, limits, around, all),
                _ => all.is_open = true,
            }
        }
    }
    sink.extend(own.into_vec());
}

/// Names of the outputs in the tenants' files of a directory, whether these are whole or not.
pub(crate) fn output_names(dir: &Path) -> Vec<String> {
    let Ok((files, _)) = list(dir) else { return vec![] };
    let mut names = vec![];
    for file in files {
        let Ok(text) = text_of(&file.path) else { continue };
        let nowhere = Sink::new(&file.shown());
        let root = yaml::read(&text, &nowhere, &|_| Some(String::new()));
        let outputs = root.as_ref().and_then(|root| root.below("outputs"));
        names.extend(outputs.into_iter().flat_map(Node::keys).map(|name| format!("{}/{name}", file.tenant)));
    }
    names
}
