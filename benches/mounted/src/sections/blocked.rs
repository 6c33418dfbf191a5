//! How long one request takes while 32 clients are blocked in others, and others still sleep.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pinpath_fuse::{
    Attr, Dispatch, Entry, Errno, FileType, Found, Handler, Lifetimes, MountOptions, Name, Node,
    OpenOptions, Opened, Request, Result, mount,
};

use super::folder;
use crate::report;
use crate::rounds::Plan;

const BLOCKED: usize = 32;
const FOR: Duration = Duration::from_secs(5);

/// `other`, and files that are read in five seconds. Nothing is remembered of them.
struct Slow {
    inside: Arc<AtomicUsize>,
}

fn attr(is_root: bool, number: u64) -> Attr {
    let file_type = if is_root { FileType::Directory } else { FileType::Regular };
    Attr::new(number, file_type, if is_root { 0o755 } else { 0o644 }).with_size(4096)
}

impl Handler for Slow {
    type Data = ();
    type File = ();
    type Dir = ();

    fn root_data(&self) {}

    fn lookup(&self, _req: &Request, _parent: &Node<'_, ()>, name: &Name) -> Result<Found<()>> {
        let number = name.as_bytes().iter().fold(7u64, |sum, &byte| sum * 31 + u64::from(byte));
        if name.as_bytes().starts_with(b".") {
            return Err(Errno::ENOENT);
        }
        Ok(Found::Entry(Entry { attr: attr(false, number), data: (), lifetimes: Lifetimes::ZERO }))
    }

    fn getattr(
        &self,
        _req: &Request,
        node: &Node<'_, ()>,
        _file: Option<&()>,
    ) -> Result<(Attr, Duration)> {
        Ok((attr(node.is_root(), node.inode().raw()), Duration::ZERO))
    }

    fn open(&self, _req: &Request, _node: &Node<'_, ()>, _flags: i32) -> Result<Opened<()>> {
        Ok(Opened { file: (), options: OpenOptions { direct_io: true, ..OpenOptions::default() } })
    }

    fn opendir(&self, _req: &Request, _node: &Node<'_, ()>, _flags: i32) -> Result<Opened<()>> {
        Ok(Opened::new(()))
    }

    fn read(
        &self,
        _req: &Request,
        _node: &Node<'_, ()>,
        _file: &(),
        _offset: u64,
        _buf: &mut [u8],
    ) -> Result<usize> {
        self.inside.fetch_add(1, Ordering::Relaxed);
        thread::sleep(FOR);
        self.inside.fetch_sub(1, Ordering::Relaxed);
        Ok(0)
    }
}

pub(crate) fn run(plan: &Plan) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for (name, dispatch) in [("Adaptive", Dispatch::Adaptive), ("Pool", Dispatch::Pool)] {
        let folder = folder()?;
        let inside = Arc::new(AtomicUsize::new(0));
        let mut options = MountOptions::default();
        options.dispatch = dispatch;
        let mount = mount(Slow { inside: inside.clone() }, folder.path(), &options)?;
        let quiet = stats_while(folder.path(), Duration::from_secs(1), || true)?;
        let (blocked, most) = thread::scope(|scope| {
            for number in 0..BLOCKED {
                let path = folder.path().join(format!("slow{number}"));
                scope.spawn(move || fs::read(path));
            }
            let mut most = 0;
            // From the first moment on, while the readers are being lost.
            let blocked = stats_while(folder.path(), FOR + FOR / 2, || {
                let now = inside.load(Ordering::Relaxed);
                most = most.max(now);
                most == 0 || now > 0
            });
            (blocked, most)
        });
        let blocked = blocked?;
        anyhow::ensure!(most == BLOCKED, "only {most} were blocked at once");
        mount.unmount()?;
        for (state, took) in [("nobody blocked", quiet), ("32 clients blocked", blocked)] {
            let at = |share: f64| took[((took.len() as f64 * share) as usize).min(took.len() - 1)];
            let show = |time: Duration| format!("{:.0} us", time.as_secs_f64() * 1e6);
            rows.push(vec![
                format!("{name}, {state}"),
                took.len().to_string(),
                show(at(0.5)),
                show(at(0.99)),
                show(at(1.0)),
            ]);
        }
    }
    let mut text = format!(
        "## Dispatch: one client while others are blocked\n\n{BLOCKED} clients read files whose handler sleeps for \
         {} s; another one stats a file again and again, each time with a look-up and a GETATTR, \
         from before the others begin. How long one such call takes:\n\n",
        FOR.as_secs()
    );
    text += &report::table(&["dispatch", "calls", "median", "99 %", "longest"], &rows);
    report::write(&plan.out, "dispatch-4-blocked.md", &text)
}

/// Stats `other` for so long at most, every millisecond; how long each took, sorted.
fn stats_while(
    at: &std::path::Path,
    limit: Duration,
    mut go_on: impl FnMut() -> bool,
) -> anyhow::Result<Vec<Duration>> {
    let (start, mut took) = (Instant::now(), Vec::new());
    while start.elapsed() < limit && (took.len() < 20 || go_on()) {
        let begun = Instant::now();
        fs::metadata(at.join("other"))?;
        took.push(begun.elapsed());
        thread::sleep(Duration::from_millis(1));
    }
    took.sort_unstable();
    Ok(took)
}
