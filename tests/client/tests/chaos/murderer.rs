//! Dispatchers, and what kills them.

use crate::random::Random;
use crate::session::{Answer, Session};
use crate::{Plan, SCHEMA, audit};
use duroxide_queue_tests::own_server::Server;
use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tokio::process::{Child, Command};

/// The status of a dispatcher that died by its own hand.
const DIED: i32 = 9;
/// How far ahead the clock of one dispatcher is: it takes the leases of all others for expired.
const FAR_AHEAD_MS: i64 = 2000;

/// How dispatchers behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Temper {
    /// As they should not, with clocks that are off.
    Wild,
    /// As they should.
    Calm,
}

/// What was killed, and what was seen while it happened.
#[derive(Debug, Default)]
pub struct Toll {
    pub dispatchers: usize,
    pub suicides: usize,
    pub sessions: usize,
    pub backends: usize,
    pub stops: usize,
    faults: Vec<String>,
}

/// What is due next.
#[derive(Clone, Copy, Debug)]
enum Disaster {
    Stop,
    KillBackend,
}

/// Dispatcher processes; one that dies is replaced.
#[derive(Debug)]
pub struct Dispatchers {
    program: Vec<String>,
    journals: PathBuf,
    temper: Temper,
    random: Random,
    processes: Vec<Child>,
    started: usize,
    murderer: Session,
    toll: Toll,
}

impl Dispatchers {
    /// Starts as many as the plan says.
    pub fn start(server: &Server, plan: &Plan, temper: Temper, random: Random) -> Dispatchers {
        let journals = server.folder().join("journals");
        std::fs::create_dir_all(&journals).expect("the folder of the journals");
        let mut dispatchers = Dispatchers {
            program: vec![server.url().to_owned(), SCHEMA.to_owned(), plan.instances.to_string()],
            journals,
            temper,
            random,
            processes: Vec::new(),
            started: 0,
            murderer: Session::new(server.options().application_name("murderer")),
            toll: Toll::default(),
        };
        for place in 0..plan.dispatchers {
            let process = dispatchers.spawn(place);
            dispatchers.processes.push(process);
        }
        dispatchers
    }

    /// Kills at random for as long as the plan says, and stops and starts the server.
    pub async fn live_through(&mut self, plan: &Plan, server: &Server) {
        let began = Instant::now();
        let mut due = disasters(plan);
        while began.elapsed() < plan.length {
            tokio::time::sleep(Duration::from_millis(self.random.between(60, 240).unsigned_abs())).await;
            self.replace_dead();
            match due.last() {
                Some((at, disaster)) if *at <= began.elapsed() => {
                    self.strike(*disaster, server).await;
                    due.pop();
                }
                _ if self.random.percent(60) => self.kill_dispatcher().await,
                _ => self.terminate_session().await,
            }
        }
        // Whatever the machine did to the timing: all that was planned happens.
        while let Some((_, disaster)) = due.pop() {
            self.strike(disaster, server).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// Kills all that are left, and tells what there was.
    pub async fn kill_all(&mut self) -> Toll {
        self.replace_dead();
        for process in &mut self.processes {
            process.kill().await.expect("a process of ours can be killed");
        }
        std::mem::take(&mut self.toll)
    }

    fn spawn(&mut self, place: usize) -> Child {
        let [url, schema, instances] = self.program.as_slice() else { unreachable!("three arguments") };
        let (temper, ahead_ms) = match self.temper {
            Temper::Calm => ("calm", 0),
            Temper::Wild if place == 0 => ("wild", FAR_AHEAD_MS),
            Temper::Wild => ("wild", self.random.between(-120, 120)),
        };
        self.started += 1;
        let name = format!("{temper}{}", self.started);
        Command::new(env!("CARGO_BIN_EXE_chaos_dispatcher"))
            .args([url, schema, &name])
            .arg(self.journals.join(&name))
            .args([self.random.bits().to_string(), ahead_ms.to_string()])
            .args([instances, temper])
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("the dispatcher's program runs")
    }

    fn replace_dead(&mut self) {
        for place in 0..self.processes.len() {
            if let Some(status) = self.processes[place].try_wait().expect("a process of ours") {
                self.bury(status);
                self.processes[place] = self.spawn(place);
            }
        }
    }

    fn bury(&mut self, status: ExitStatus) {
        match (status.code(), status.signal()) {
            (Some(DIED), _) => self.toll.suicides += 1,
            (_, Some(9)) => {}
            _ => self.toll.faults.push(format!("a dispatcher ended with {status}")),
        }
    }

    async fn kill_dispatcher(&mut self) {
        let place = self.random.below(self.processes.len() as u64) as usize;
        self.processes[place].kill().await.expect("a process of ours can be killed");
        self.toll.dispatchers += 1;
        self.processes[place] = self.spawn(place);
    }

    async fn terminate_session(&mut self) {
        let Some(pid) = self.any_backend().await else { return };
        let done: sqlx::Result<bool> = sqlx::query_scalar("SELECT pg_terminate_backend($1)")
            .bind(pid)
            .fetch_one(self.murderer.connection().await)
            .await;
        if let Answer::Done(true) = self.murderer.answer(done) {
            self.toll.sessions += 1;
        }
    }

    /// A backend of a dispatcher or producer, rather one at work.
    async fn any_backend(&mut self) -> Option<i32> {
        let pid: sqlx::Result<Option<i32>> = sqlx::query_scalar(
            "SELECT pid FROM pg_stat_activity \
             WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() \
             ORDER BY state = 'active' AND random() < 0.7 DESC, random() LIMIT 1",
        )
        .fetch_optional(self.murderer.connection().await)
        .await;
        match self.murderer.answer(pid) {
            Answer::Done(pid) => pid,
            _ => None,
        }
    }

    async fn strike(&mut self, disaster: Disaster, server: &Server) {
        match disaster {
            Disaster::Stop => {
                server.stop_immediately().await;
                server.start_again().await;
                self.toll.stops += 1;
            }
            Disaster::KillBackend => {
                let Some(pid) = self.any_backend().await else { return };
                if server.kill_backend(pid).await {
                    self.toll.backends += 1;
                }
            }
        }
        // What recovery has left, with everybody at work on it again.
        let torn = sqlx::query_scalar(audit::TORN).fetch_all(self.murderer.connection().await).await;
        if let Answer::Done(torn) = self.murderer.answer(torn) {
            self.toll.faults.extend(torn);
        }
    }
}

/// What is to happen when, the last first.
fn disasters(plan: &Plan) -> Vec<(Duration, Disaster)> {
    let stops = (1..=plan.stops).map(|n| (plan.length * n / (plan.stops + 1), Disaster::Stop));
    let kills = (1..=plan.killed_backends)
        .map(|n| (plan.length * (2 * n - 1) / (2 * plan.killed_backends), Disaster::KillBackend));
    let mut all: Vec<_> = stops.chain(kills).collect();
    all.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    all
}

impl Toll {
    /// What must not have happened.
    pub fn faults(&self) -> Vec<String> {
        self.faults.clone()
    }
}

impl fmt::Display for Toll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "killed: {} dispatchers, {} by their own hand, {} sessions, {} backends with SIGKILL; \
             {} immediate stops",
            self.dispatchers, self.suicides, self.sessions, self.backends, self.stops
        )
    }
}
