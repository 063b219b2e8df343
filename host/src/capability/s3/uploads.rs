//! Parts on their way: each is a task of the host, at most sixteen a store, and none outlives the call that started it.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{AbortHandle, JoinHandle};

use crate::capability::bindings::s3::{Error, Part};

/// Parts of one store that travel at the same time.
const MAX_PARTS: usize = 16;

/// The parts of one store.
#[derive(Debug)]
pub(crate) struct Uploads {
    places: Arc<Semaphore>,
    running: Vec<AbortHandle>,
}

/// A part on its way, that a guest has a handle of. Dropping it ends the request.
#[derive(Debug)]
pub struct PendingPart {
    task: JoinHandle<Result<Part, Error>>,
    ended: Option<Result<Part, Error>>,
}

impl Default for Uploads {
    fn default() -> Self {
        Self { places: Arc::new(Semaphore::new(MAX_PARTS)), running: Vec::new() }
    }
}

impl Uploads {
    /// Waits until one more part may travel. Parts end by themselves, so this does.
    pub(super) fn place(&self) -> impl Future<Output = Option<OwnedSemaphorePermit>> + Send + use<> {
        let places = Arc::clone(&self.places);
        async move { places.acquire_owned().await.ok() }
    }

    /// Sends a part that holds its place until it has ended.
    pub(super) fn start(
        &mut self,
        place: OwnedSemaphorePermit,
        send: impl Future<Output = Result<Part, Error>> + Send + 'static,
    ) -> PendingPart {
        self.running.retain(|task| !task.is_finished());
        let task = tokio::spawn(async move {
            let part = send.await;
            drop(place);
            part
        });
        self.running.push(task.abort_handle());
        PendingPart { task, ended: None }
    }

    /// Ends what is still on its way: nothing that a call began goes on behind it.
    pub(crate) fn abort_all(&mut self) {
        for task in self.running.drain(..) {
            task.abort();
        }
    }
}

impl Drop for Uploads {
    fn drop(&mut self) {
        self.abort_all();
    }
}

impl PendingPart {
    /// How the part ended. Asked again, it says the same.
    pub(super) async fn ended(&mut self) -> Result<Part, Error> {
        if let Some(ended) = &self.ended {
            return ended.clone();
        }
        let ended = (&mut self.task).await.unwrap_or_else(|error| {
            let what =
                if error.is_panic() { "the host failed while it sent the part" } else { "the part was given up" };
            Err(Error::Connection(what.into()))
        });
        self.ended.insert(ended).clone()
    }
}

impl Drop for PendingPart {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    fn part(number: u16) -> Part {
        Part { number, etag: "e".into(), checksum: None }
    }

    #[tokio::test]
    async fn the_end_of_a_part_is_told_as_often_as_it_is_asked_for() {
        let mut uploads = Uploads::default();
        let place = uploads.place().await.unwrap();
        let mut pending = uploads.start(place, async { Ok(part(7)) });
        assert_eq!(pending.ended().await.unwrap().number, 7);
        assert_eq!(pending.ended().await.unwrap().number, 7);
    }

    #[tokio::test]
    async fn the_seventeenth_part_waits_for_a_place() {
        let mut uploads = Uploads::default();
        let mut finish = Vec::new();
        let mut parts = Vec::new();
        for _ in 0..MAX_PARTS {
            let (tell, told) = oneshot::channel::<()>();
            let place = uploads.place().await.unwrap();
            parts.push(uploads.start(place, async move {
                let _ = told.await;
                Ok(part(1))
            }));
            finish.push(tell);
        }
        let mut waiting = Box::pin(uploads.place());
        assert!(futures_util::poll!(waiting.as_mut()).is_pending());
        finish.pop().unwrap().send(()).unwrap();
        assert!(waiting.await.is_some());
    }

    #[tokio::test]
    async fn a_dropped_part_is_ended_and_gives_back_its_place() {
        let mut uploads = Uploads::default();
        let place = uploads.place().await.unwrap();
        let pending = uploads.start(place, std::future::pending());
        drop(pending);
        let all = u32::try_from(MAX_PARTS).unwrap();
        assert!(uploads.places.acquire_many(all).await.is_ok());
    }

    #[tokio::test]
    async fn parts_that_the_end_of_a_call_gave_up_say_so() {
        let mut uploads = Uploads::default();
        let place = uploads.place().await.unwrap();
        let mut pending = uploads.start(place, std::future::pending());
        uploads.abort_all();
        assert!(matches!(pending.ended().await, Err(Error::Connection(_))));
    }
}
