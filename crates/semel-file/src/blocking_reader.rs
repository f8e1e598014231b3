//! A thread that may wait for the disk, so that the threads of callers need not.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use semel::Result;
use tokio::sync::oneshot;

use crate::reader::Reader;
use crate::store::closed;

type Job = Box<dyn FnOnce(&Reader) + Send>;

/// The thread that reads what is not in memory. It ends with its last handle.
pub(crate) struct BlockingReader {
    jobs: Mutex<Option<Sender<Job>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl BlockingReader {
    pub(crate) fn start(reader: Arc<Reader>) -> std::io::Result<Self> {
        let (sender, jobs) = channel::<Job>();
        let thread = std::thread::Builder::new().name("semel-file-reader".to_owned());
        let thread = thread.spawn(move || jobs.iter().for_each(|job| job(&reader)))?;
        Ok(Self { jobs: Mutex::new(Some(sender)), thread: Mutex::new(Some(thread)) })
    }

    /// Has something read.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Reader) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (caller, told) = oneshot::channel();
        let job: Job = Box::new(move |reader| drop(caller.send(read(reader))));
        let sent = {
            let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
            jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok())
        };
        if !sent {
            return Err(closed());
        }
        told.await.unwrap_or_else(|_| Err(closed()))
    }
}

impl Drop for BlockingReader {
    fn drop(&mut self) {
        drop(self.jobs.lock().unwrap_or_else(PoisonError::into_inner).take());
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The last reply to end may hold the last handle, on the very thread that it waited for.
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != std::thread::current().id()) {
            drop(thread.join());
        }
    }
}
