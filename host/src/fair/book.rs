//! The rule by which turns are given out. No threads, no clock: who calls says what time it is.
//!
//! Start-time fair queueing over tenants. Each tenant has an account of *virtual time*: the CPU that it had, divided by its share. A
//! free turn goes to the tenant among those that wait whose account is lowest, and within it to whoever waits longest. A tenant that comes back after it had
//! nothing to do begins a little behind where the lowest of the others stands: having been idle earns next to nothing.
//!
//! A turn is not taken away before its work ends, and that may be a large piece to compress. So a tenant that is not ahead of the
//! others gets a turn on top at once; the system then shares the cores among the threads until the others' turns end. A [`Kind::Job`] gets one where its
//! tenant runs nothing. A [`Kind::Poll`] gets one in any case, since passing a turn on takes as long as waking a thread does, which is longer than most
//! polls; for the same reason a tenant alone polls twice as many as there are cores. All of it has an end ([`ON_TOP`]), so that a
//! thread of the runtime is always left for whoever did not ask yet.

use std::collections::VecDeque;
use std::time::Duration;

/// How far ahead of the others a tenant may be, and still get a turn on top: a guest's tick. Short work that comes often would
/// else wait behind long work each second time.
const AHEAD: Virtual = 10_000_000 * SCALE;

/// How far behind the others a tenant may fall that had all it asked for. What it did not get because it asked a moment too late it makes up for, and one
/// with little to do comes before those with much. What it could have had and did not want is not saved up beyond this.
const CREDIT: Virtual = 100_000_000 * SCALE;

/// Turns for each core, those on top counted.
pub(super) const ON_TOP: u32 = 4;

/// Nanoseconds of CPU, times [`SCALE`], divided by a share.
type Virtual = u128;
const SCALE: Virtual = 1000;

/// What a turn is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Of a future, on a thread of the runtime.
    Poll,
    /// On a thread of its own.
    Job,
}

/// The accounts. `W` is what waits for a turn.
#[derive(Debug)]
pub(super) struct Book<W> {
    places: u32,
    taken: u32,
    accounts: Vec<Account<W>>,
    /// Accounts that run or wait.
    active: Vec<usize>,
    /// Where a tenant that comes back begins at least.
    floor: Virtual,
}

#[derive(Debug)]
struct Account<W> {
    share: u32,
    virtual_time: Virtual,
    running: u32,
    /// The sum of when those began that run.
    began: Duration,
    waiting: VecDeque<(Kind, W)>,
}

impl<W> Account<W> {
    fn is_active(&self) -> bool {
        self.running > 0 || !self.waiting.is_empty()
    }

    /// With what those that run will have cost if they end now, as the wall clock has it: their own clocks cannot be read from here.
    fn owed(&self, now: Duration) -> Virtual {
        let running = (now * self.running).saturating_sub(self.began);
        self.virtual_time + self.cost(running)
    }

    fn cost(&self, cpu: Duration) -> Virtual {
        cpu.as_nanos() * SCALE / Virtual::from(self.share)
    }
}

impl<W> Book<W> {
    /// So many turns at a time.
    pub(super) fn new(places: u32) -> Self {
        Self { places: places.max(1), taken: 0, accounts: vec![], active: vec![], floor: 0 }
    }

    /// A new account, with a share of 1.
    pub(super) fn open(&mut self) -> usize {
        let waiting = VecDeque::new();
        self.accounts.push(Account { share: 1, virtual_time: 0, running: 0, began: Duration::ZERO, waiting });
        self.accounts.len() - 1
    }

    pub(super) fn set_share(&mut self, account: usize, share: u32) {
        if let Some(account) = self.accounts.get_mut(account) {
            account.share = share.max(1);
        }
    }

    /// Asks for a turn. What asks comes back where it has one at once; else what `waiter` makes of it waits.
    pub(super) fn ask<A>(
        &mut self,
        of: usize,
        kind: Kind,
        now: Duration,
        asks: A,
        waiter: impl FnOnce(A) -> W,
    ) -> Option<A> {
        self.forget_credit(of, now);
        let at_once = self.taken < self.places || self.may_have_one_on_top(of, kind, now);
        let Some(account) = self.accounts.get_mut(of) else { return Some(asks) };
        if !at_once {
            account.waiting.push_back((kind, waiter(asks)));
            return None;
        }
        account.running += 1;
        account.began += now;
        self.taken += 1;
        Some(asks)
    }

    /// A turn ends that began at `began` and took so much CPU.
    pub(super) fn end(&mut self, of: usize, began: Duration, cpu: Duration) {
        let Some(account) = self.accounts.get_mut(of) else { return };
        account.virtual_time += account.cost(cpu);
        account.running = account.running.saturating_sub(1);
        account.began = account.began.saturating_sub(began);
        self.taken = self.taken.saturating_sub(1);
        self.rest(of);
    }

    /// Who has a turn from now on, if there is one; to be called until there is none.
    pub(super) fn next(&mut self, now: Duration) -> Option<(usize, W)> {
        let first = |n: &usize| self.accounts.get(*n)?.waiting.front().map(|(kind, _)| *kind);
        let is_free = self.taken < self.places;
        let next =
            self.lowest(now, |n| first(n).is_some_and(|kind| is_free || self.may_have_one_on_top(*n, kind, now)))?;
        let account = self.accounts.get_mut(next)?;
        let (_, waiter) = account.waiting.pop_front()?;
        account.running += 1;
        account.began += now;
        self.taken += 1;
        Some((next, waiter))
    }

    /// Takes away what does not wait any more.
    pub(super) fn forget(&mut self, of: usize, is_it: impl Fn(&W) -> bool) {
        let Some(account) = self.accounts.get_mut(of) else { return };
        account.waiting.retain(|(_, waiter)| !is_it(waiter));
        self.rest(of);
    }

    fn lowest(&self, now: Duration, which: impl Fn(&usize) -> bool) -> Option<usize> {
        let owed = |n: &usize| self.accounts.get(*n).map_or(Virtual::MAX, |account| account.owed(now));
        self.active.iter().copied().filter(which).min_by_key(owed)
    }

    fn may_have_one_on_top(&self, of: usize, kind: Kind, now: Duration) -> bool {
        let Some(account) = self.accounts.get(of) else { return false };
        let mut others = self.active.iter().filter(|n| **n != of).filter_map(|n| self.accounts.get(*n)).peekable();
        let alone = others.peek().is_none();
        let has_thread = match kind {
            Kind::Job => account.running == 0 && self.taken < ON_TOP * self.places,
            Kind::Poll if alone => self.taken < 2 * self.places,
            Kind::Poll => self.taken < ON_TOP * self.places,
        };
        let own = account.owed(now);
        has_thread && others.all(|other| own <= other.owed(now).saturating_add(AHEAD))
    }

    /// Whoever asks while it has nothing waiting had all that it wanted until now. It stands no more than [`CREDIT`] behind the lowest of those
    /// that had to wait, or, where it had nothing to do at all, of all.
    fn forget_credit(&mut self, of: usize, now: Duration) {
        let Some(account) = self.accounts.get(of).filter(|account| account.waiting.is_empty()) else { return };
        let (idle, owed) = (account.running == 0, account.owed(now));
        let others = self.active.iter().filter(|n| **n != of).filter_map(|n| self.accounts.get(*n));
        let lowest = others.filter(|other| idle || !other.waiting.is_empty()).map(|other| other.owed(now)).min();
        if idle {
            self.floor = self.floor.max(lowest.unwrap_or(0));
            self.active.push(of);
        }
        let least = if idle { Some(self.floor) } else { lowest };
        if let (Some(least), Some(account)) = (least, self.accounts.get_mut(of)) {
            account.virtual_time += least.saturating_sub(CREDIT).saturating_sub(owed);
        }
    }

    /// An account may have nothing to do any more.
    fn rest(&mut self, of: usize) {
        let Some(account) = self.accounts.get(of).filter(|account| !account.is_active()) else { return };
        self.active.retain(|n| *n != of);
        if self.active.is_empty() {
            // The next to come, whoever it is, is not to be behind what this one had.
            self.floor = self.floor.max(account.virtual_time);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A machine with so many cores that share their time evenly among what runs, and tenants that always have `at_once` jobs of `length` wanted.
    struct Machine {
        book: Book<Duration>,
        cores: u32,
        now: Duration,
        jobs: Vec<Job>,
        /// CPU that each account had.
        had: Vec<Duration>,
        /// The longest wait of each account for a turn.
        waited: Vec<Duration>,
        tenants: Vec<Habit>,
    }

    #[derive(Clone, Copy, Debug)]
    struct Habit {
        share: u32,
        at_once: u32,
        length: Duration,
        /// Between a job's end and when it wants the next; 0 is a tenant that is never satisfied.
        pause: Duration,
    }

    struct Job {
        account: usize,
        began: Duration,
        left: Duration,
    }

    impl Machine {
        fn run(cores: u32, tenants: Vec<Habit>, time: Duration) -> Self {
            let mut book = Book::new(cores);
            for tenant in &tenants {
                let account = book.open();
                book.set_share(account, tenant.share);
            }
            let none = vec![Duration::ZERO; tenants.len()];
            let mut machine =
                Self { book, cores, now: Duration::ZERO, jobs: vec![], had: none.clone(), waited: none, tenants };
            let mut wants: Vec<(Duration, usize)> = vec![];
            for (account, habit) in machine.tenants.iter().enumerate() {
                wants.extend((0..habit.at_once).map(|_| (Duration::ZERO, account)));
            }
            const STEP: Duration = Duration::from_micros(100);
            while machine.now < time {
                let now = machine.now;
                let (due, later): (Vec<_>, Vec<_>) = wants.into_iter().partition(|(when, _)| *when <= now);
                wants = later;
                for (_, account) in due {
                    if machine.book.ask(account, Kind::Job, now, (), |()| now).is_some() {
                        machine.begin(account);
                    }
                }
                machine.grant();
                wants.extend(machine.step(STEP));
            }
            machine
        }

        fn begin(&mut self, account: usize) {
            let left = self.tenants[account].length;
            self.jobs.push(Job { account, began: self.now, left });
        }

        fn grant(&mut self) {
            while let Some((account, asked)) = self.book.next(self.now) {
                let waited = self.now - asked;
                self.waited[account] = self.waited[account].max(waited);
                self.begin(account);
            }
        }

        /// Lets what runs go on; gives who wants a turn when.
        fn step(&mut self, step: Duration) -> Vec<(Duration, usize)> {
            self.now += step;
            let each = step * self.cores.min(self.jobs.len().try_into().unwrap()) / (self.jobs.len().max(1) as u32);
            for job in &mut self.jobs {
                let took = each.min(job.left);
                job.left -= took;
                self.had[job.account] += took;
            }
            let (ended, running) = std::mem::take(&mut self.jobs).into_iter().partition(|job| job.left.is_zero());
            self.jobs = running;
            let ended: Vec<Job> = ended;
            let mut wants = vec![];
            for job in ended {
                self.book.end(job.account, job.began, self.tenants[job.account].length);
                wants.push((self.now + self.tenants[job.account].pause, job.account));
                self.grant();
            }
            wants
        }

        fn part(&self, account: usize) -> f64 {
            let all: Duration = self.had.iter().sum();
            self.had[account].as_secs_f64() / all.as_secs_f64()
        }
    }

    const fn greedy(share: u32, at_once: u32, millis: u64) -> Habit {
        Habit { share, at_once, length: Duration::from_millis(millis), pause: Duration::ZERO }
    }

    #[test]
    fn two_that_want_all_there_is_get_the_same_however_many_ask_and_however_long_their_jobs_are() {
        let machine = Machine::run(2, vec![greedy(1, 2, 2), greedy(1, 64, 80)], Duration::from_secs(20));
        assert!((machine.part(0) - 0.5).abs() < 0.05, "{:?}", machine.had);
    }

    #[test]
    fn shares_are_kept() {
        let machine =
            Machine::run(2, vec![greedy(3, 8, 10), greedy(1, 8, 10), greedy(1, 8, 10)], Duration::from_secs(20));
        assert!((machine.part(0) - 0.6).abs() < 0.05 && (machine.part(1) - 0.2).abs() < 0.05, "{:?}", machine.had);
    }

    #[test]
    fn what_one_leaves_the_others_have() {
        let seconds = 10;
        let lone = Machine::run(2, vec![greedy(1, 8, 10), greedy(9, 0, 1)], Duration::from_secs(seconds));
        assert!(lone.had[0] >= Duration::from_secs(2 * seconds) - Duration::from_millis(100), "{:?}", lone.had);
        // The first wants no more than one core, though its share is nine tenths. What it does begins on top of the other's turns, with two thirds of a
        // core until one of those ends.
        let both = Machine::run(2, vec![greedy(9, 1, 10), greedy(1, 8, 10)], Duration::from_secs(seconds));
        let all: Duration = both.had.iter().sum();
        assert!(all >= Duration::from_secs(2 * seconds) - Duration::from_millis(300), "{:?}", both.had);
        assert!(both.had[0] >= Duration::from_millis(600 * seconds), "{:?}", both.had);
    }

    #[test]
    fn who_wants_little_hardly_waits_beside_one_with_long_jobs() {
        let modest = Habit { share: 1, at_once: 1, length: Duration::from_millis(1), pause: Duration::from_millis(20) };
        let machine = Machine::run(2, vec![modest, greedy(1, 64, 80)], Duration::from_secs(10));
        assert!(machine.waited[0] <= Duration::from_millis(1), "{:?}", machine.waited);
        let alone = Machine::run(2, vec![modest], Duration::from_secs(10));
        // The cores are shared by three threads at most while it runs, so its millisecond takes one and a half.
        assert!(machine.had[0] >= alone.had[0] * 95 / 100, "{:?} and {:?}", machine.had, alone.had);
    }

    #[test]
    fn having_been_idle_earns_no_more_than_a_little() {
        let mut book = Book::new(1);
        let (first, second) = (book.open(), book.open());
        let ms = Duration::from_millis;
        for n in 0..1000 {
            assert!(book.ask(first, Kind::Job, ms(n), (), |()| ()).is_some());
            book.end(first, ms(n), ms(1));
        }
        // The second one was idle for a second, in which the first one had all. Now both want all.
        let mut turns = vec![];
        assert!(book.ask(first, Kind::Job, ms(1000), (), |()| ()).is_some());
        assert!(book.ask(second, Kind::Job, ms(1000), (), |()| ()).is_some(), "on top");
        for _ in 0..100 {
            assert!(book.ask(first, Kind::Job, ms(1000), (), |()| ()).is_none());
            assert!(book.ask(second, Kind::Job, ms(1000), (), |()| ()).is_none());
        }
        book.end(first, ms(1000), ms(20));
        book.end(second, ms(1000), ms(20));
        while turns.len() < 60 {
            let (account, ()) = book.next(ms(1000)).unwrap();
            turns.push(account);
            book.end(account, ms(1000), ms(20));
        }
        // Five of 20 ms are the credit.
        let first_had = turns.iter().filter(|account| **account == first).count();
        assert!((26..=28).contains(&first_had), "{turns:?}");
    }

    #[test]
    fn who_does_not_wait_any_more_gets_no_turn() {
        let mut book = Book::new(1);
        let account = book.open();
        let at_once = (0..3).map(|n| book.ask(account, Kind::Job, Duration::ZERO, n, |n| n).is_some());
        assert_eq!(at_once.collect::<Vec<_>>(), [true, false, false]);
        book.forget(account, |waiter| *waiter == 1);
        book.end(account, Duration::ZERO, Duration::ZERO);
        assert_eq!(book.next(Duration::ZERO), Some((account, 2)));
    }

    #[test]
    fn a_poll_waits_only_where_its_tenant_is_ahead_of_another() {
        let mut book = Book::new(1);
        let (much, little) = (book.open(), book.open());
        let s = Duration::from_secs;
        let at_once = (0..4).map(|_| book.ask(much, Kind::Poll, s(0), (), |()| ()).is_some());
        assert_eq!(at_once.collect::<Vec<_>>(), [true, true, false, false], "alone, twice as many as cores");
        assert!(book.ask(little, Kind::Poll, s(1), (), |()| ()).is_some());
        assert!(book.ask(little, Kind::Poll, s(1), (), |()| ()).is_some());
        book.end(much, s(0), s(1));
        book.end(much, s(0), s(1));
        assert!(book.next(s(1)).is_none(), "the one core is the other's");
        book.end(little, s(1), Duration::ZERO);
        book.end(little, s(1), Duration::ZERO);
        assert_eq!(book.next(s(1)), Some((much, ())));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// Whatever shares and habits they have: nobody who always wants more gets less than its part by more than what its
        /// and the others' longest jobs explain, and no core is idle while somebody waits.
        #[test]
        fn who_always_wants_more_gets_its_part(
            cores in 1_u32..4,
            habits in prop::collection::vec((1_u32..5, 1_u64..40), 2..5),
        ) {
            let tenants: Vec<Habit> =
                habits.iter().map(|(share, millis)| greedy(*share, 2 * cores, *millis)).collect();
            let time = Duration::from_secs(8);
            let machine = Machine::run(cores, tenants.clone(), time);
            let all: Duration = machine.had.iter().sum();
            // The simulation's own steps lose a little at each job's end.
            prop_assert!(all >= time * cores * 95 / 100, "{:?}", machine.had);
            let shares: u32 = tenants.iter().map(|habit| habit.share).sum();
            for (account, habit) in tenants.iter().enumerate() {
                let due = time * cores * habit.share / shares;
                let slack = Duration::from_millis(400) + due / 10;
                prop_assert!(machine.had[account] + slack >= due, "{account} had {:?} of {due:?}: {tenants:?}", machine.had[account]);
            }
        }

        /// Turns are given out and come back: as many as there may be, and no more.
        #[test]
        fn there_is_an_end_to_turns_on_top(
            cores in 1_u32..4,
            asks in prop::collection::vec((0_usize..6, any::<bool>()), 0..200),
        ) {
            let mut book = Book::new(cores);
            let accounts: Vec<usize> = (0..6).map(|_| book.open()).collect();
            let mut running: VecDeque<usize> = VecDeque::new();
            let mut waiting = 0_usize;
            for (n, (which, ends)) in asks.into_iter().enumerate() {
                let now = Duration::from_millis(n as u64);
                if ends && let Some(account) = running.pop_front() {
                    book.end(account, Duration::ZERO, Duration::from_millis(3));
                } else if book.ask(accounts[which], Kind::Job, now, (), |()| ()).is_some() {
                    running.push_back(accounts[which]);
                } else {
                    waiting += 1;
                }
                while let Some((account, ())) = book.next(now) {
                    running.push_back(account);
                    waiting -= 1;
                }
                prop_assert!(running.len() <= (ON_TOP * cores) as usize);
                prop_assert!(waiting == 0 || running.len() >= cores as usize);
            }
        }
    }
}
