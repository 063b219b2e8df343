//! Tenants, in the same house.

use std::sync::Mutex;

use super::*;
use crate::config::{IngestLimits, TenantLimits};

/// A clock that stands still until it is told otherwise.
#[derive(Clone, Default)]
struct Standing(Arc<Mutex<Duration>>);

impl Standing {
    fn go_on(&self, by: Duration) {
        *self.0.lock().unwrap() += by;
    }
}

fn limited(journal_bytes: Option<u64>, records_per_second: Option<u64>) -> TenantLimits {
    let burst = Duration::from_secs(1);
    let ingest = IngestLimits { bytes_per_second: None, records_per_second, burst };
    TenantLimits { journal_bytes, ingest, ..TenantLimits::default() }
}

/// Outputs by name, with what they match and their options, and tenants with tags and limits.
type Outputs = Vec<(&'static str, QueueOptions)>;
type Of = (&'static str, Vec<&'static str>, TenantLimits);

fn house_of(outputs: Outputs, tenants: Vec<Of>) -> (House, Standing) {
    let dir = tempfile::tempdir().unwrap();
    let (journal, recovery) = open_journal(dir.path(), None);
    let (state, _) = State::open(&dir.path().join("data")).unwrap();
    let (metrics, clock) = (Metrics::new(), Standing::default());
    let ledger = Ledger::new(journal.clone(), state, metrics.clone());
    let (patterns, options): (Vec<_>, Vec<_>) = outputs.into_iter().unzip();
    let (queues, positions) = ledger.restore(&recovery, options).unwrap();
    let committing = ledger.clone();
    journal.start(Box::new(move |group| committing.committed(group)));
    let routing = Routing {
        claims: tenants
            .iter()
            .map(|(name, tags, _)| ((*name).into(), tags.iter().map(|&t| t.into()).collect()))
            .collect(),
        limits: tenants.iter().map(|(name, _, limits)| ((*name).into(), *limits)).collect(),
        outputs: patterns.iter().map(|p| vec![(*p).to_owned()]).zip(queues.clone()).collect(),
    };
    let at = clock.clone();
    let tenants = Tenants::with_clock(Arc::new(move || *at.0.lock().unwrap()));
    let log = journal.clone();
    let logs = Box::new(move |tenant: Option<&str>| Arc::new(log.lane(crate::fair::Tenant::named(tenant))) as Arc<_>);
    let intake = Intake::with(routing, logs, ledger, positions, metrics.clone(), tenants).unwrap();
    (House { dir, journal, metrics, queues, intake }, clock)
}

fn at_limit(refused: Result<Ticket, Refused>) -> AtLimit {
    match refused {
        Err(Refused::AtLimit(at)) => *at,
        other => panic!("{other:?} is no limit of a tenant"),
    }
}

async fn durable(ticket: Result<Ticket, Refused>) {
    ticket.unwrap().durable().await.unwrap();
}

/// Which source it comes from (`acme/…` is a tenant's own), whom its token names, its tag; and the outputs that get it. Acme claims
/// `acme.*` and `both.*`, globex `globex` and `both.*`, and every output takes everything.
#[tokio::test]
async fn a_record_reaches_the_outputs_of_its_tenant_and_no_others() {
    for (source, sender, tag, reached) in [
        ("acme/web", None, "acme.x", ["acme/all", "acme/more"].as_slice()),
        ("acme/web", None, "globex", &["acme/all", "acme/more"]),
        ("acme/web", None, "free", &["acme/all", "acme/more"]),
        ("shared", None, "acme.x", &["acme/all", "acme/more"]),
        ("shared", None, "both.x", &["acme/all", "acme/more"]),
        ("shared", None, "globex", &["globex/all"]),
        ("shared", None, "globexx", &["all"]),
        ("shared", None, "free", &["all"]),
        ("shared", Some("globex"), "acme.x", &["globex/all"]),
        ("shared", Some("globex"), "free", &["globex/all"]),
        ("shared", Some("acme"), "globex", &["acme/all", "acme/more"]),
        ("shared", Some("gone"), "free", &[]),
    ] {
        let names = ["all", "acme/all", "acme/more", "globex/all"];
        let outputs = names.map(|name| ("*", output(name))).to_vec();
        let free = TenantLimits::default();
        let tenants = vec![("acme", vec!["acme.*", "both.*"], free), ("globex", vec!["globex", "both.*"], free)];
        let (house, _) = house_of(outputs, tenants);
        let mut intake = house.intake.for_source(&source.into());
        if let Some(sender) = sender {
            intake = intake.for_tenant(&sender.into());
        }
        // Twice: what is remembered of a tag is remembered for its tenant.
        for _ in 0..2 {
            durable(intake.try_enqueue(chunk(tag, 10))).await;
            durable(house.intake.for_source(&"other".into()).try_enqueue(chunk("free", 10))).await;
        }
        let has: Vec<&str> = house.queues.iter().filter(|q| q.records() > 0).map(|q| &**q.output()).collect();
        let mut expected = reached.to_vec();
        expected.extend(["all"].iter().filter(|_| !reached.contains(&"all")));
        expected.sort_by_key(|name| names.iter().position(|known| known == name));
        assert_eq!(has, expected, "{source} {sender:?} {tag}");
    }
}

#[tokio::test]
async fn what_no_output_of_a_tenant_wants_is_counted_as_that_tenants() {
    let (house, _) = house_of(vec![("x", output("acme/some")), ("*", output("all"))], vec![]);
    durable(house.intake.for_tenant(&"acme".into()).try_enqueue(chunk("y", 10))).await;
    assert!(house.counted(r#"wharf_dropped_records_total{output="",tenant="acme",reason="no_output"} 1"#));
    assert!(house.counted(r#"wharf_tenant_accepted_records_total{tenant="acme"} 1"#));
}

#[tokio::test]
async fn all_queues_of_a_tenant_together_have_its_share_of_the_disk_and_another_tenant_has_its_own() {
    let outputs = vec![("*", output("acme/a")), ("b", output("acme/b")), ("*", output("globex/a"))];
    let tenants = vec![("acme", vec![], limited(Some(2_000), None)), ("globex", vec![], limited(Some(2_000), None))];
    let (house, _) = house_of(outputs, tenants);
    let (acme, globex) = (house.intake.for_tenant(&"acme".into()), house.intake.for_tenant(&"globex".into()));
    // Both outputs want it, and each counts it.
    durable(acme.try_enqueue(chunk("b", 600))).await;
    let used: u64 = house.queues[..2].iter().map(Queue::bytes).sum();
    assert!((1_200..2_000).contains(&used), "{used}");
    let at = at_limit(acme.try_enqueue(chunk("b", 600)));
    assert_eq!((&*at.tenant, at.limit, at.most, at.current), ("acme", Limit::Journal, 2_000, used));
    assert_eq!(at.requested, used, "it is as large as the one that is there");
    assert_eq!(
        at.to_string(),
        format!(
            "tenant acme is at its limit: limits.journal allows 2 KB, {used} of it are used, and {used} more were to come"
        )
        .replace(&used.to_string(), &crate::config::units::format_size(used))
    );
    assert!(house.counted(r#"wharf_tenant_refused_total{tenant="acme",limit="journal"} 1"#));
    // One output alone still has room, and so has the other tenant.
    durable(acme.try_enqueue(chunk("a", 100))).await;
    durable(globex.try_enqueue(chunk("a", 600))).await;
}

#[tokio::test]
async fn who_waits_for_the_tenants_share_goes_on_when_any_of_its_outputs_has_delivered() {
    let outputs = vec![("a", output("acme/a")), ("b", output("acme/b"))];
    let (house, _) = house_of(outputs, vec![("acme", vec![], limited(Some(1_000), None))]);
    let acme = house.intake.for_tenant(&"acme".into());
    durable(acme.try_enqueue(chunk("a", 700))).await;
    let waiting = tokio::spawn(async move { acme.enqueue(chunk("b", 700)).await?.durable().await });
    // It has looked and waits, as the count says.
    while !house.counted(r#"wharf_tenant_refused_total{tenant="acme",limit="journal"} 1"#) {
        tokio::task::yield_now().await;
    }
    let queue = house.queues[0].clone();
    queue.flush();
    let batch = queue.next_batch().await.unwrap();
    queue.settle(&batch).unwrap();
    waiting.await.unwrap().unwrap();
    assert_eq!(house.queues[1].records(), 1);
}

#[tokio::test]
async fn what_is_larger_than_a_tenants_whole_share_comes_in_when_there_is_nothing_else() {
    let (house, _) = house_of(vec![("*", output("acme/a"))], vec![("acme", vec![], limited(Some(1_000), None))]);
    let acme = house.intake.for_tenant(&"acme".into());
    durable(acme.try_enqueue(chunk("a", 5_000))).await;
    assert_eq!(at_limit(acme.try_enqueue(chunk("a", 1))).limit, Limit::Journal);
}

#[tokio::test]
async fn outputs_that_may_drop_do_so_within_their_tenants_share_and_never_take_what_another_waits_for() {
    let newest = QueueOptions { when_full: WhenFull::DropNewest, ..output("acme/newest") };
    let oldest = QueueOptions { when_full: WhenFull::DropOldest, ..output("acme/oldest") };
    let outputs = vec![("*", newest), ("*", oldest), ("b", output("acme/block"))];
    let (house, _) = house_of(outputs, vec![("acme", vec![], limited(Some(3_000), None))]);
    let acme = house.intake.for_tenant(&"acme".into());
    durable(acme.try_enqueue(chunk("a", 900))).await;
    assert_eq!(house.queues.iter().map(Queue::records).collect::<Vec<_>>(), [1, 1, 0]);
    // No room for two more: the oldest of one makes room for its own, and the other drops the new one.
    durable(acme.try_enqueue(chunk("a", 900))).await;
    assert_eq!(house.queues.iter().map(Queue::records).collect::<Vec<_>>(), [1, 1, 0]);
    assert!(
        house
            .counted(r#"wharf_dropped_records_total{output="newest",tenant="acme",reason="queue_full_drop_newest"} 1"#)
    );
    // Counted where it is written down, which nobody waits for.
    let oldest = r#"wharf_dropped_records_total{output="oldest",tenant="acme",reason="queue_full_drop_oldest"} 1"#;
    while !house.counted(oldest) {
        tokio::task::yield_now().await;
    }
    // What cannot be dropped has what is left: the others do without. It may wait until what was dropped is written down.
    durable(acme.enqueue(chunk("b", 700)).await).await;
    assert_eq!(house.queues[2].records(), 1);
    let used: u64 = house.queues.iter().map(Queue::used).sum();
    assert!(used <= 3_000, "{used}");
}

#[tokio::test]
async fn a_tenant_that_sends_too_fast_is_refused_until_time_has_passed_and_another_is_not() {
    let outputs = vec![("*", output("acme/a")), ("*", output("globex/a"))];
    let tenants = vec![("acme", vec!["x"], limited(None, Some(2))), ("globex", vec![], limited(None, Some(2)))];
    let (house, clock) = house_of(outputs, tenants);
    let acme = house.intake.for_tenant(&"acme".into());
    durable(acme.try_enqueue(chunk("a", 10))).await;
    // By its tag, it is the same tenant's.
    durable(house.intake.try_enqueue(chunk("x", 10))).await;
    let at = at_limit(acme.try_enqueue(chunk("a", 10)));
    assert_eq!((at.limit, at.most, at.current, at.requested), (Limit::IngestRecords, 2, 2, 1));
    assert_eq!(at.retry_after, Duration::from_millis(500));
    assert_eq!(Refused::AtLimit(Box::new(at)).reason(), "tenant_ingest");
    durable(house.intake.for_tenant(&"globex".into()).try_enqueue(chunk("a", 10))).await;
    clock.go_on(Duration::from_millis(500));
    durable(acme.try_enqueue(chunk("a", 10))).await;
    assert_eq!(house.queues[0].records(), 3);
}

#[tokio::test]
async fn a_source_that_can_wait_waits_for_its_tenants_rate() {
    let (house, clock) = house_of(vec![("*", output("acme/a"))], vec![("acme", vec![], limited(None, Some(100)))]);
    let acme = house.intake.for_source(&"acme/files".into());
    let mut builder = ChunkBuilder::new(BodyKind::Text, "a".into());
    for _ in 0..100 {
        builder.push(1, b"line");
    }
    durable(acme.enqueue(builder.finish().unwrap()).await).await;
    let waiting = tokio::spawn(async move { acme.enqueue(chunk("a", 10)).await?.durable().await });
    while !house.counted(r#"wharf_tenant_refused_total{tenant="acme",limit="ingest_records"} 1"#) {
        tokio::task::yield_now().await;
    }
    assert!(!waiting.is_finished());
    clock.go_on(Duration::from_millis(10));
    waiting.await.unwrap().unwrap();
    assert_eq!(house.queues[0].records(), 101);
}

#[tokio::test]
async fn what_was_refused_for_another_reason_has_used_nothing_of_the_rate() {
    let full = QueueOptions { max_bytes: Some(1), ..output("acme/a") };
    let (house, _) = house_of(vec![("*", full)], vec![("acme", vec![], limited(None, Some(2)))]);
    let acme = house.intake.for_tenant(&"acme".into());
    durable(acme.try_enqueue(chunk("a", 10))).await;
    for _ in 0..5 {
        assert_eq!(acme.try_enqueue(chunk("a", 10)).unwrap_err().reason(), "queue_full");
    }
}

#[tokio::test]
async fn limits_and_tenants_can_be_others_from_one_moment_to_the_next() {
    let (house, _) = house_of(vec![("*", output("acme/a"))], vec![("acme", vec![], limited(Some(500), None))]);
    let acme = house.intake.for_tenant(&"acme".into());
    durable(acme.try_enqueue(chunk("a", 400))).await;
    assert_eq!(at_limit(acme.try_enqueue(chunk("a", 400))).most, 500);
    let reroute = |limits: TenantLimits| {
        let outputs = vec![(vec!["*".to_owned()], house.queues[0].clone())];
        house.intake.reroute(Routing { limits: vec![("acme".into(), limits)], outputs, ..Routing::default() }).unwrap();
    };
    reroute(limited(Some(5_000), None));
    durable(acme.try_enqueue(chunk("a", 400))).await;
    reroute(limited(Some(600), Some(1)));
    assert_eq!(at_limit(acme.try_enqueue(chunk("a", 400))).most, 600);
    house.intake.reroute(Routing::default()).unwrap();
    durable(acme.try_enqueue(chunk("a", 400))).await;
    assert!(house.counted(r#"wharf_dropped_records_total{output="",tenant="acme",reason="no_output"} 1"#));
}
