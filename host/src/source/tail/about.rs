//! What is said of a file in each of its records: its path, and which container wrote it.

use std::path::Path;

use crate::record::encode::write_json_string;

/// What the names of a container's log files say.
#[derive(Debug, PartialEq, Eq, Default)]
struct Container<'a> {
    namespace: &'a str,
    pod: &'a str,
    pod_id: Option<&'a str>,
    name: &'a str,
    id: Option<&'a str>,
}

/// The beginning of the object that a file's lines become, up to the text: `{"file":"…","kubernetes":{…},"log":`. `real` is where the file
/// is in truth, where `path` is a link.
pub(crate) fn object(path_key: Option<&str>, kubernetes: bool, path: &Path, real: Option<&Path>) -> Vec<u8> {
    let mut object = vec![b'{'];
    if let Some(key) = path_key {
        write_json_string(key, &mut object);
        object.push(b':');
        write_json_string(&path.to_string_lossy(), &mut object);
        object.push(b',');
    }
    let (path, real) = (path.to_string_lossy(), real.map(Path::to_string_lossy));
    if kubernetes && let Some(container) = container(&path, real.as_deref()) {
        let fields = [
            ("namespace_name", Some(container.namespace)),
            ("pod_name", Some(container.pod)),
            ("pod_id", container.pod_id),
            ("container_name", Some(container.name)),
            ("container_id", container.id),
        ];
        object.extend_from_slice(b"\"kubernetes\":");
        let mut before = b'{';
        for (key, value) in fields.into_iter().filter_map(|(key, value)| Some((key, value?))) {
            object.push(before);
            write_json_string(key, &mut object);
            object.push(b':');
            write_json_string(value, &mut object);
            before = b',';
        }
        object.extend_from_slice(b"},");
    }
    object.extend_from_slice(b"\"log\":");
    object
}

/// By the link in `/var/log/containers` or the file in `/var/log/pods`; both, where both are there.
fn container<'a>(path: &'a str, real: Option<&'a str>) -> Option<Container<'a>> {
    let of_pod = of_pod(path).or_else(|| real.and_then(of_pod));
    match of_link(path) {
        Some(link) => Some(Container { pod_id: of_pod.and_then(|pod| pod.pod_id), ..link }),
        None => of_pod,
    }
}

/// `POD_NAMESPACE_CONTAINER-ID.log`, where the id has 64 hexadecimal digits (`pkg/kubelet/kuberuntime`, `legacyLogSymlink`). Names of Kubernetes
/// have no underscores.
fn of_link(path: &str) -> Option<Container<'_>> {
    let name = path.rsplit('/').next()?.strip_suffix(".log")?;
    let mut parts = name.splitn(3, '_');
    let (pod, namespace, rest) = (parts.next()?, parts.next()?, parts.next()?);
    let (name, id) = rest.rsplit_once('-')?;
    let fine = id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit()) && !name.is_empty();
    fine.then_some(Container { namespace, pod, pod_id: None, name, id: Some(id) })
}

/// `…/pods/NAMESPACE_POD_UID/CONTAINER/N.log` (`BuildPodLogsDirectory`), also where it is rotated: `0.log.20240102-030405`.
fn of_pod(path: &str) -> Option<Container<'_>> {
    let mut names = path.rsplit('/');
    let (file, name, pod, pods) = (names.next()?, names.next()?, names.next()?, names.next()?);
    let number = file.split_once(".log")?.0;
    let mut parts = pod.splitn(3, '_');
    let (namespace, pod, pod_id) = (parts.next()?, parts.next()?, parts.next()?);
    let fine = pods == "pods" && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    fine.then_some(Container { namespace, pod, pod_id: Some(pod_id), name, id: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "aeeccc7a9f00f6e4e066aeff0434cf80621215071f1b20a51e8340aa7c35eac6";

    fn said(path: &str, real: Option<&str>) -> String {
        String::from_utf8(object(None, true, Path::new(path), real.map(Path::new))).unwrap()
    }

    /// The name is the example of Fluent Bit's documentation of its filter `kubernetes`.
    #[test]
    fn the_name_of_a_link_says_pod_namespace_container_and_its_id() {
        let link = format!("/var/log/containers/apache-logs-annotated_default_apache-{ID}.log");
        let expected = format!(
            "{{\"kubernetes\":{{\"namespace_name\":\"default\",\"pod_name\":\"apache-logs-annotated\",\"container_name\":\"apache\",\
             \"container_id\":\"{ID}\"}},\"log\":"
        );
        assert_eq!(said(&link, None), expected);
        let real = "/var/log/pods/default_apache-logs-annotated_6b1b/apache/0.log";
        assert!(said(&link, Some(real)).contains("\"pod_id\":\"6b1b\""), "{}", said(&link, Some(real)));
    }

    #[test]
    fn the_path_below_pods_says_it_too_without_the_containers_id() {
        for file in ["0.log", "12.log.20240102-030405"] {
            assert_eq!(
                said(&format!("/var/log/pods/kube-system_dns-7x_42-a/side-car/{file}"), None),
                "{\"kubernetes\":{\"namespace_name\":\"kube-system\",\"pod_name\":\"dns-7x\",\"pod_id\":\"42-a\",\
                 \"container_name\":\"side-car\"},\"log\":"
            );
        }
    }

    #[test]
    fn other_names_say_nothing() {
        for path in ["/var/log/app.log", "/var/log/containers/a_b_c-123.log", "/pods/a_b/c/0.log", "/x/a_b_c/d/0.log"] {
            assert_eq!(said(path, None), "{\"log\":");
        }
        let object = object(Some("file \"x\""), false, Path::new("/a"), None);
        assert_eq!(object, br#"{"file \"x\"":"/a","log":"#);
    }
}
