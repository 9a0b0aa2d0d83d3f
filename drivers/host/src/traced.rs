//! The file into which a run writes what its machines hear and say (`run --trace`).
//!
//! What is seen becomes text at once, in the pump; a thread of its own writes it. Between them is little room, and when it is full
//! the pump waits: nothing is left out of a trace, and what it costs is speed. A file that can't be written on ends the trace with a
//! warning, and so does one that takes nothing for half a minute, or is as large as it may be; the run goes on, since its rows matter more
//! than words about them.
//! What was written is with the operating system at once, so a process that is killed loses what it did in its last moments.

use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use contract::{Error, Kind};
use kernel::config::Config;
use kernel::coordinator::{Input, Output};
use kernel::time::Time;
use kernel::worker::{WorkerInput, WorkerOutput};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};
use trace::{End, Writer};

/// Where a trace ends: about so many bytes. A file without an end would take the disk that the pipeline's rows need.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Texts on their way to the thread that writes. What comes meanwhile becomes one text.
const TEXTS_MAX: usize = 2;

/// Text that may wait in the pump while there is no room; with more of it the pump waits.
const HELD_BYTES_MAX: usize = 1 << 20;

/// How long a run waits for its trace. A disk that takes nothing for so long may never do, and the run's rows matter more.
const ROOM_WAIT_MAX: Duration = Duration::from_secs(30);

/// How long the end of a run waits for the end of its trace.
pub(crate) const END_WAIT_MAX: Duration = Duration::from_secs(10);

/// The same where somebody wants the process to end at once.
pub(crate) const LEAVE_WAIT_MAX: Duration = Duration::from_secs(1);

/// A file that is there and holds no life yet. Dropped as such it is removed again.
#[derive(Debug)]
pub struct Trace {
    path: PathBuf,
    file: Option<File>,
    bytes_max: u64,
}

/// What became of a trace, once its run is over.
pub(crate) struct Written {
    end: oneshot::Receiver<()>,
}

impl Trace {
    /// Makes the file, which must not be there, for nobody else to read.
    pub fn create(path: &Path) -> Result<Self, Error> {
        use std::os::unix::fs::OpenOptionsExt as _;
        let made = File::options().write(true).create_new(true).mode(0o600).open(path);
        let file = made.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => Error::new(
                Kind::Config,
                "trace-exists",
                format!("--trace: '{}' is there already, and a trace replaces nothing", path.display()),
                "name another file, or move that one away",
            ),
            _ => not_writable(path, &error),
        })?;
        let mut trace = Self { path: path.to_owned(), file: Some(file), bytes_max: FILE_BYTES_MAX };
        // A disk that has no room for a few words has none for a trace: better now than later.
        let probe = [b' '; 4096];
        let room = trace.file.as_mut().map_or(Ok(()), |file| {
            file.write_all(&probe)?;
            file.sync_data()?;
            file.set_len(0)?;
            std::io::Seek::rewind(file)
        });
        match room {
            Ok(()) => Ok(trace),
            Err(error) => Err(not_writable(path, &error)), // It is removed again.
        }
    }

    /// The same, ended at about so many bytes.
    #[doc(hidden)]
    #[must_use]
    pub fn of_at_most(mut self, bytes_max: u64) -> Self {
        self.bytes_max = bytes_max;
        self
    }

    /// Somebody who writes down a life.
    pub(crate) fn begin(mut self) -> (Box<dyn pump::Witness>, Written) {
        let (writer, first) = Writer::new(env!("CARGO_PKG_VERSION"));
        let (texts, taken) = mpsc::channel(TEXTS_MAX);
        let (ended, end) = oneshot::channel();
        if let Some(file) = self.file.take() {
            let path = self.path.clone();
            let thread = std::thread::Builder::new().name("trace".into()).spawn(move || {
                write(file, &path, &first, taken);
                let _ = ended.send(());
            });
            if let Err(error) = thread {
                tracing::warn!("{}", ended_early(&self.path, &error));
            }
        }
        let open = Some(Open { writer, texts, bytes: 0, room_wait_max: ROOM_WAIT_MAX });
        (Box::new(Recorder { open, path: self.path.clone(), bytes_max: self.bytes_max }), Written { end })
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            // Nothing stands in it; the next try may want its name.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Written {
    /// Waits until all that was seen is in the file, or can't be; not longer than that.
    pub(crate) async fn whole(&mut self, wait_max: Duration) {
        if tokio::time::timeout(wait_max, &mut self.end).await.is_err() {
            tracing::warn!("the trace is still not written to its end, and is not waited for any longer");
        }
    }
}

/// Writes what comes, until nothing does.
fn write(mut file: File, path: &Path, first: &str, mut texts: mpsc::Receiver<String>) {
    let mut bytes = 0;
    let mut put = |text: &str| {
        bytes += text.len();
        file.write_all(text.as_bytes())
    };
    let mut result = put(first);
    while result.is_ok() {
        let Some(text) = texts.blocking_recv() else { break };
        result = put(&text);
    }
    match result.and_then(|()| file.sync_data()) {
        Ok(()) => tracing::info!(file = %path.display(), bytes, "the trace is written"),
        Err(error) => tracing::warn!("{}", ended_early(path, &error)),
    }
}

/// Sees a life, and has it written.
struct Recorder {
    /// `None` once the trace has ended.
    open: Option<Open>,
    path: PathBuf,
    bytes_max: u64,
}

struct Open {
    writer: Writer,
    texts: mpsc::Sender<String>,
    bytes: u64,
    room_wait_max: Duration,
}

impl Recorder {
    fn write(&mut self, note: impl FnOnce(&mut Writer)) {
        if let Some(open) = &mut self.open {
            note(&mut open.writer);
        }
    }
}

#[async_trait]
impl pump::Witness for Recorder {
    fn begins(&mut self, now: Time, config: &Config) {
        self.write(|writer| writer.begins(now, config));
    }

    fn hears(&mut self, now: Time, input: &Input) {
        self.write(|writer| writer.hears(now, input));
    }

    fn says(&mut self, output: &Output) {
        self.write(|writer| writer.says(output));
    }

    fn worker_hears(&mut self, now: Time, input: &WorkerInput) {
        self.write(|writer| writer.worker_hears(now, input));
    }

    fn worker_says(&mut self, output: &WorkerOutput) {
        self.write(|writer| writer.worker_says(output));
    }

    async fn settle(&mut self, over: bool) {
        let Some(open) = &mut self.open else { return };
        let full = open.bytes >= self.bytes_max;
        if over || full {
            open.writer.ends(if over { End::Stopped } else { End::Full });
        }
        let waits = over || full || open.writer.held() >= HELD_BYTES_MAX;
        let written = open.hand_over(waits, &self.path).await;
        if full && !over && written {
            let (file, bytes) = (self.path.display(), open.bytes);
            tracing::warn!(%file, bytes, "the trace ends here: its file is as large as it may be. The run goes on");
        }
        if over || full || !written {
            self.open = None;
        }
    }
}

impl Open {
    /// Gives what was noted to who writes it, if there is room or `waits`. False if nobody writes any more, which was said, and why.
    async fn hand_over(&mut self, waits: bool, path: &Path) -> bool {
        let room = match self.texts.try_reserve() {
            Ok(room) => Ok(room),
            Err(TrySendError::Full(())) if !waits => return true,
            Err(TrySendError::Full(())) => match tokio::time::timeout(self.room_wait_max, self.texts.reserve()).await {
                Ok(room) => room,
                Err(_) => {
                    let stuck = format!("nothing could be written for {} s", self.room_wait_max.as_secs());
                    tracing::warn!("{}", ended_early(path, &std::io::Error::new(ErrorKind::TimedOut, stuck)));
                    return false;
                }
            },
            Err(TrySendError::Closed(())) => return false,
        };
        let Ok(room) = room else { return false };
        let text = self.writer.take();
        self.bytes += text.len() as u64;
        room.send(text);
        true
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // The life ends without saying so: what it heard last may be why.
        if let Some(mut open) = self.open.take() {
            let _ = open.texts.try_send(open.writer.take_unfinished());
        }
    }
}

fn not_writable(path: &Path, error: &std::io::Error) -> Error {
    let what = format!("--trace: '{}' can't be written: {error}", path.display());
    Error::new(
        Kind::Config,
        "trace-not-writable",
        what,
        "name a file in a folder that is there, with room, and that you may write to",
    )
}

fn ended_early(path: &Path, error: &std::io::Error) -> Error {
    let what = format!("the trace '{}' can't be written on and ends here: {error}. The run goes on", path.display());
    Error::new(Kind::Transient, "trace-ended", what, "what is there can be replayed up to its last whole step")
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use kernel::coordinator::Operator;
    use pump::Witness as _;
    use trace::{Reader, TraceError};

    use super::*;

    fn recorder() -> (Recorder, String, mpsc::Receiver<String>) {
        let (writer, first) = Writer::new("0.1.0");
        let (texts, taken) = mpsc::channel(TEXTS_MAX);
        let open = Some(Open { writer, texts, bytes: 0, room_wait_max: ROOM_WAIT_MAX });
        let mut recorder = Recorder { open, path: "run.trace".into(), bytes_max: FILE_BYTES_MAX };
        recorder.begins(Time(0), &Config::new(Default::default()));
        (recorder, first, taken)
    }

    fn steps(text: &str) -> Result<u64, TraceError> {
        let mut reader = Reader::new(text.as_bytes())?;
        let mut steps = 0;
        while reader.next_step()?.is_some() {
            steps += 1;
        }
        Ok(steps)
    }

    /// Something that takes many bytes, so that there is soon no room.
    fn large() -> Input {
        Input::Operator(Operator::Pause("a".repeat(1 << 16).as_str().into()))
    }

    #[tokio::test]
    async fn a_witness_that_writes_more_slowly_than_it_sees_waits_and_forgets_nothing() {
        let (mut recorder, mut text, mut taken) = recorder();
        let mut seen = 1;
        while recorder.settle(false).now_or_never().is_some() {
            recorder.hears(Time(seen), &large());
            seen += 1;
            assert!(seen < 100, "it takes all that it sees, whatever it has no room for");
        }
        assert!(seen > 16, "it waits only when there is no room");
        while let Ok(more) = taken.try_recv() {
            text.push_str(&more);
        }
        assert!(recorder.settle(false).now_or_never().is_some(), "now there is room");
        assert!(recorder.settle(true).now_or_never().is_some());
        while let Ok(more) = taken.try_recv() {
            text.push_str(&more);
        }
        assert_eq!(steps(&text).unwrap(), seen + 1);
    }

    #[tokio::test]
    async fn what_was_heard_when_a_life_broke_off_stands_at_the_end_without_a_hash() {
        let (mut recorder, mut text, mut taken) = recorder();
        recorder.settle(false).now_or_never().expect("there is room");
        recorder.hears(Time(7), &Input::Timeout);
        drop(recorder);
        while let Ok(more) = taken.try_recv() {
            text.push_str(&more);
        }
        assert!(text.ends_with("\n7 hears time\n"), "{text}");
        let line = text.lines().count() as u64;
        assert!(matches!(steps(&text), Err(TraceError::Cut { line: cut }) if cut == line));
    }

    /// A disk behind a network that is gone, say: a run that waits for it would never go on.
    #[tokio::test]
    async fn a_disk_that_takes_nothing_ends_the_trace_and_the_run_goes_on() {
        let (mut recorder, _, mut taken) = recorder();
        recorder.open.as_mut().expect("a trace").room_wait_max = Duration::from_millis(10);
        for seen in 1..100 {
            recorder.hears(Time(seen), &large());
            recorder.settle(false).await;
        }
        assert!(recorder.open.is_none());
        drop(recorder);
        let texts = std::iter::from_fn(|| taken.try_recv().ok()).count();
        assert_eq!(texts, TEXTS_MAX, "what it took before is written when the disk comes back, and no more");
    }

    #[test]
    fn a_disk_that_is_full_ends_the_trace_and_nothing_else() {
        let full = File::options().write(true).open("/dev/full").expect("a device that is always full");
        let trace = Trace { path: "/dev/full".into(), file: Some(full), bytes_max: FILE_BYTES_MAX };
        let (mut recorder, written) = trace.begin();
        recorder.begins(Time(0), &Config::new(Default::default()));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(async {
            written.end.await.expect("the thread ends, though more might come");
            for now in 0..100 {
                recorder.hears(Time(now), &large());
                recorder.settle(now == 99).await;
            }
        });
    }
}
