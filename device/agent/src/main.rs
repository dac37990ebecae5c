// SPDX-License-Identifier: GPL-2.0-only
//! `fasttrack-agent`: tells fasttrackd who is in front in this session.

use fasttrack_agent::again::Again;
use fasttrack_agent::bus;
use fasttrack_agent::choose;
use fasttrack_agent::conduct::{self, Conductor, Sources, Wanted};
use fasttrack_agent::daemon::{Arrival, Daemon};
use fasttrack_agent::end;
use fasttrack_agent::env::Env;
use fasttrack_agent::event::Event;
use fasttrack_agent::fault::Fault;
use fasttrack_agent::kde;
use fasttrack_agent::knobs::{self, Knobs};
use fasttrack_agent::merge::{Merge, Step};
use fasttrack_agent::place::Place;
use fasttrack_agent::resolve::Resolver;
use fasttrack_agent::scope::UserManager;
use fasttrack_agent::signs::{Signs, Wake};
use fasttrack_agent::sink::{Print, Sink};
use fasttrack_agent::source::{Out, Probe, Source};
use fasttrack_agent::start;
use fasttrack_config::{agent, Problem};
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::{sync_channel, Receiver, RecvTimeoutError};
use std::sync::Arc;
use std::time::Instant;

const HELP: &str = "\
fasttrack-agent: tells fasttrackd who is in front in this session

  fasttrack-agent                 tells the daemon; the source of focus is chosen by itself
  fasttrack-agent --source NAME   takes this source of focus, whatever agent.toml says
  fasttrack-agent --kernel        tells the patched kernel UIDs, without a daemon: for Android, as root
  fasttrack-agent --print         writes each report as a line of JSON in place of telling the daemon
  fasttrack-agent --list          says of each source whether it can tell here
  fasttrack-agent --start         has the user's systemd start it, with this session's environment
  fasttrack-agent --version | --help
Exit status: 0 good, 1 it cannot run here, 2 the command line is bad.
";

/// Events that wait for the daemon. More, and sources wait.
const EVENTS_MOST: usize = 256;

struct Options {
    source: Option<String>,
    print: bool,
    kernel: bool,
    list: bool,
    start: bool,
}

/// What a command line asks for, or what is wrong with it.
fn options(words: &[String]) -> Result<Options, String> {
    let mut options = Options {
        source: None,
        print: false,
        kernel: false,
        list: false,
        start: false,
    };
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            "--print" => options.print = true,
            "--kernel" => options.kernel = true,
            "--list" => options.list = true,
            "--start" => options.start = true,
            "--source" => {
                let name = words.next().ok_or("--source needs a name; see --list")?;
                options.source = Some(name.to_string());
            }
            _ => return Err(format!("{word:?} is no option; see --help")),
        }
    }
    Ok(options)
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some("--help") => print!("{HELP}"),
        Some("--version") => println!("fasttrack-agent {}", env!("CARGO_PKG_VERSION")),
        _ => match options(&words) {
            Ok(options) => return run(&options),
            Err(problem) => {
                eprintln!("fasttrack-agent: {problem}");
                return ExitCode::from(2);
            }
        },
    }
    ExitCode::SUCCESS
}

fn run(options: &Options) -> ExitCode {
    one_arena();
    conduct::end_on_panic();
    let env = Env::own();
    if options.start {
        return code(start::start(&env));
    }
    let resolver = Resolver::new(Place::default(), rustix::process::geteuid().as_raw());
    let all = choose::all(&env, &resolver);
    let others = choose::others(&env, &resolver);
    if options.list {
        list(&all);
        list(&others);
        return ExitCode::SUCCESS;
    }
    let (config, problems) = agent::load(Path::new("/"), |name| env.var(name).map(str::to_string));
    let wanted = Wanted {
        focus: options.source.clone().or(config.source),
        without: config.without,
        ends: options.print && options.source.is_some(),
    };
    let known = |name: &String| all.iter().any(|source| source.name() == name);
    if let Some(name) = wanted.focus.iter().find(|name| !known(name)) {
        let valid = fasttrack_config::agent::FOCUS.join(", ");
        eprintln!("fasttrack-agent: there is no source of focus '{name}'; valid: {valid}");
        return ExitCode::from(2);
    }
    code(serve(options, wanted, env, resolver, problems))
}

fn code(result: Result<(), Fault>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("fasttrack-agent: {fault}");
            ExitCode::FAILURE
        }
    }
}

/// Threads that sleep need no heap of their own: each would keep some hundred KiB. Other C libraries than glibc make none.
fn one_arena() {
    #[cfg(target_env = "gnu")]
    // SAFETY: no other thread runs yet.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1)
    };
}

fn list(all: &[Box<dyn Source>]) {
    for source in all {
        match source.probe() {
            Probe::Yes => println!("{}: can tell", source.name()),
            Probe::No(why) => println!("{}: {why}", source.name()),
        }
    }
}

/// The sources of this session.
struct Session {
    own: Env,
    resolver: Resolver,
    /// Whether a daemon is told, whose arrival is of interest.
    daemon: bool,
}

impl Sources for Session {
    fn focus(&self, env: &Env) -> Vec<Box<dyn Source>> {
        choose::all(env, &self.resolver)
    }

    fn others(&self, env: &Env) -> Vec<Box<dyn Source>> {
        let mut others = choose::others(env, &self.resolver);
        if self.daemon {
            others.push(Box::new(Arrival));
        }
        others
    }

    fn env(&self) -> Env {
        let env = self.own.with(&bus::environment());
        // The X server's key is looked for there, by the library.
        if let Some(path) = env.var("XAUTHORITY") {
            std::env::set_var("XAUTHORITY", path);
        }
        env
    }
}

fn serve(
    options: &Options,
    wanted: Wanted,
    env: Env,
    resolver: Resolver,
    problems: Vec<Problem>,
) -> Result<(), Fault> {
    let (to, from) = sync_channel(EVENTS_MOST);
    let wake = Wake::new()?;
    let signs = Signs::new(&env, wake.clone())?;
    let out = Out::new("agent", resolver.clone(), to.clone())
        .with_scoper(Some(Arc::new(UserManager)))
        .with_wake(wake.clone());
    let print = options.print;
    let mut sink: Box<dyn Sink> = match (print, options.kernel) {
        (true, _) => Box::new(Print(std::io::stdout().lock())),
        (false, true) => {
            // Whoever takes events has ended if this fails.
            end::listen(move || drop(to.send(Event::End(None))))?;
            Box::new(Knobs::new(Path::new(knobs::FOLDER))?)
        }
        (false, false) => {
            let daemon = Daemon::connect()?;
            let own = env.clone();
            // Not an event: a daemon that hangs would have the session's end wait.
            end::listen(move || {
                kde::end(&own);
                std::process::exit(0)
            })?;
            Box::new(daemon)
        }
    };
    for problem in problems {
        out.say(Event::Fault {
            source: "configuration",
            why: problem.to_string(),
        })?;
    }
    let sources = Session {
        own: env,
        resolver,
        daemon: !print && !options.kernel,
    };
    let conductor = Conductor::new(sources, wanted, out.clone(), wake);
    std::thread::spawn(move || {
        // Sources that still run do not keep it: nobody would begin them again.
        let fault = conductor.run(signs).err();
        let _ = out.say(Event::End(fault));
    });
    follow(&from, sink.as_mut(), print)
}

fn log(line: Option<String>) {
    if let Some(line) = line {
        eprintln!("{line}");
    }
}

/// The one owner of state: takes events until no source is left, or the agent is to end.
fn follow(from: &Receiver<Event>, sink: &mut dyn Sink, print: bool) -> Result<(), Fault> {
    let (mut merge, mut again) = (Merge::default(), Again::default());
    let mut names = Vec::new();
    // Whether this daemon has taken a report, and knows the sources. Who has nothing to report has none to name.
    let (mut reports, mut named) = (false, false);
    loop {
        let event = match again.wait(from) {
            Ok(Event::End(fault)) => {
                sink.end()?;
                return fault.map_or(Ok(()), Err);
            }
            Ok(event) => event,
            // To the daemon, which was not told, it is as if it had come just now.
            Err(RecvTimeoutError::Timeout) => Event::Daemon,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        };
        let whole = event == Event::Daemon;
        if whole {
            (reports, named) = (false, false);
        }
        let mut taken = true;
        for step in merge.take(event) {
            let (report, told) = match step {
                Step::Tell(report) => {
                    let told = sink.take(&report).map(|()| reports = true);
                    (Some(report), told)
                }
                Step::Trouble(trouble) => (None, sink.trouble(&trouble)),
                Step::Sources(all) => {
                    (names, named) = (all, false);
                    (None, Ok(()))
                }
                Step::Log(line) => {
                    eprintln!("{line}");
                    (None, Ok(()))
                }
            };
            match told {
                // Nobody reads what is printed.
                Err(fault) if print => return Err(fault),
                Err(Fault(why)) => {
                    taken = false;
                    log(merge.untold(report, why));
                }
                Ok(()) => {}
            }
        }
        if reports && !named {
            named = true;
            // A daemon of another version may not know what they are: reports are told all the same.
            if let Err(Fault(why)) = sink.sources(&names) {
                log(merge.untold(None, why));
            }
        }
        again.told(whole, taken, Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fasttrack_agent::merge::Trouble;
    use fasttrack_detector::report::{AppRef, Report, Sense};

    /// A daemon that refuses what it is told while the session is not active.
    struct Refusing {
        refuses: Vec<Report>,
        taken: Vec<Report>,
        ended: bool,
    }

    impl Sink for Refusing {
        fn take(&mut self, report: &Report) -> Result<(), Fault> {
            if let Some(at) = self.refuses.iter().position(|one| one == report) {
                self.refuses.remove(at);
                return Err(Fault::new("the session is not active"));
            }
            self.taken.push(report.clone());
            Ok(())
        }

        fn trouble(&mut self, _: &Trouble) -> Result<(), Fault> {
            Ok(())
        }

        fn end(&mut self) -> Result<(), Fault> {
            self.ended = true;
            Ok(())
        }
    }

    #[test]
    fn it_ends_when_it_is_told_and_not_before() {
        for fault in [None, Some(Fault::new("nothing can be watched"))] {
            let (to, from) = sync_channel(EVENTS_MOST);
            for event in [Event::Daemon, Event::End(fault.clone()), Event::Daemon] {
                to.send(event).expect("room");
            }
            let mut sink = Refusing {
                refuses: Vec::new(),
                taken: Vec::new(),
                ended: false,
            };
            assert_eq!(follow(&from, &mut sink, false).err(), fault);
            assert!(sink.ended);
            assert_eq!(from.try_recv(), Ok(Event::Daemon));
        }
    }

    #[test]
    fn a_sense_that_ends_while_the_session_is_away_is_told_when_it_is_back() {
        let app = AppRef {
            cgroup: "/m".into(),
            inode: 1,
            id: "m".into(),
            pid: 0,
        };
        let music = |on| Report::Perceptible {
            app: app.clone(),
            sense: Sense::Audio,
            on,
        };
        let heard = |on| Event::Sense {
            source: "pipewire",
            app: app.clone(),
            sense: Sense::Audio,
            on,
        };
        let (to, from) = sync_channel(EVENTS_MOST);
        for event in [heard(true), heard(false), Event::Daemon, Event::Daemon] {
            to.send(event).expect("room");
        }
        drop(to);
        let mut sink = Refusing {
            refuses: vec![music(false), music(false)],
            taken: Vec::new(),
            ended: false,
        };
        follow(&from, &mut sink, false).expect("it ends");
        assert!(!sink.ended);
        assert_eq!(sink.taken, [music(true), music(false)]);
    }
}
