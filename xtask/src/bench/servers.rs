//! The programs: how they are started, asked, and ended.

use super::{figures::Figures, http};
use crate::{process, project::Project};
use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::{
    ffi::OsStr,
    fs::{self, File},
    net::{Ipv4Addr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

const MASTER_KEY: &str = "bench-master-key-0123456789";
const POLL: Duration = Duration::from_millis(10);
/// How long a program may take to answer after its start, or to end.
const PATIENCE: Duration = Duration::from_secs(20);
const NGINX_CONF: &str = include_str!("nginx.conf");

/// What is run, and where it may write.
pub(crate) struct Programs {
    pub(super) gateway: PathBuf,
    pub(super) bench: PathBuf,
    pub(super) nginx: Option<PathBuf>,
    pub(super) folder: PathBuf,
}

pub(crate) struct Timing {
    pub(super) rounds: usize,
    pub(super) seconds: f64,
    pub(super) warmup: f64,
    pub(super) settle: f64,
}

impl Timing {
    pub(crate) fn new(quick: bool, rounds: Option<usize>, seconds: Option<f64>) -> Self {
        let (usual_rounds, usual_seconds, warmup) = if quick { (1, 1.5, 0.5) } else { (3, 5.0, 1.0) };
        Self {
            rounds: rounds.unwrap_or(usual_rounds).max(1),
            seconds: seconds.unwrap_or(usual_seconds),
            warmup,
            // What the page says of memory: a second after the last request.
            settle: 1.0,
        }
    }
}

/// Ends with its handle.
pub(crate) struct Server {
    child: Child,
    pub(super) port: u16,
    /// Whether its CPU time and memory are of interest.
    measured: bool,
    /// What it says. Kept when a run ends with an error.
    log: PathBuf,
}

impl Server {
    /// Waits until somebody listens there.
    fn start(command: &mut Command, port: u16, measured: bool, log: &Path) -> Result<Self> {
        let said = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
        command.stdin(Stdio::null()).stdout(said.try_clone()?).stderr(said);
        let child = command.spawn();
        let mut server = Self {
            child: child.with_context(|| format!("cannot start {:?}", command.get_program()))?,
            port,
            measured,
            log: log.to_owned(),
        };
        server.until("listen", || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok())?;
        Ok(server)
    }

    fn until(&mut self, what: &str, is_so: impl Fn() -> bool) -> Result<()> {
        let begin = Instant::now();
        while !is_so() {
            if let Some(status) = self.child.try_wait()? {
                bail!(
                    "a program that was to {what} ended ({status}): see {}",
                    self.log.display()
                );
            }
            if begin.elapsed() > PATIENCE {
                bail!("a program does not {what}: see {}", self.log.display());
            }
            thread::sleep(POLL);
        }
        Ok(())
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.measured.then(|| self.child.id())
    }

    /// Asks a gateway in its operator's name.
    pub(crate) fn request(&self, method: &str, path: &str, body: &str) -> Result<String> {
        http::request(method, self.port, path, MASTER_KEY, body)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // nginx takes its workers along only when it is asked; the standard library can only kill.
        let asked = Command::new("sh")
            .args(["-c", "kill \"$0\" 2>/dev/null", &self.child.id().to_string()])
            .status();
        if asked.is_err() || self.until_ended().is_err() {
            // An error means that it has ended by itself.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

impl Server {
    fn until_ended(&mut self) -> Result<()> {
        let begin = Instant::now();
        while self.child.try_wait()?.is_none() {
            if begin.elapsed() > PATIENCE {
                bail!("it does not end");
            }
            thread::sleep(POLL);
        }
        Ok(())
    }
}

/// A free port. Somebody else may take it before it is used; then the start fails and says so.
fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// Ten thousand streams are twenty thousand files. Root may raise the limit, others come as far as theirs goes.
fn with_many_files(program: &Path) -> Command {
    let mut sh = Command::new("sh");
    let script = "ulimit -n 65536 2>/dev/null || ulimit -n \"$(ulimit -Hn)\"; exec \"$0\" \"$@\"";
    sh.args([OsStr::new("-c"), OsStr::new(script), program.as_os_str()]);
    sh
}

impl Programs {
    pub(crate) fn new(project: &Project, gateway: PathBuf) -> Self {
        Self {
            gateway,
            bench: super::tool(project, "switchyard-bench"),
            nginx: None,
            folder: project.path("target/xtask/bench"),
        }
    }

    pub(crate) fn mock(&self) -> Result<Server> {
        let (port, folder) = (free_port()?, self.empty_folder("mock")?);
        let mut mock = with_many_files(&self.bench);
        mock.args(["mock", "--port", &port.to_string()]);
        Server::start(&mut mock, port, false, &folder.join("log"))
    }

    pub(super) fn nginx(&self, mock: &Server) -> Result<Option<Server>> {
        let Some(nginx) = &self.nginx else { return Ok(None) };
        let folder = self.empty_folder("nginx")?;
        let port = free_port()?;
        let conf = folder.join("nginx.conf");
        let text = NGINX_CONF
            .replace("@folder@", &folder.display().to_string())
            .replace("@mock@", &mock.port.to_string())
            .replace("@port@", &port.to_string());
        fs::write(&conf, text)?;
        let mut command = with_many_files(nginx);
        command.args(["-e", "stderr", "-p"]).arg(&folder).arg("-c").arg(&conf);
        Server::start(&mut command, port, true, &folder.join("log")).map(Some)
    }

    /// A gateway with this configuration and an empty database.
    pub(crate) fn gateway(&self, config: &str) -> Result<Server> {
        let folder = self.empty_folder("gateway")?;
        self.gateway_in(&folder, config)
    }

    /// One with so many virtual keys in its database, and a file with the secrets of `used` of them, one a line.
    pub(super) fn gateway_with_keys(&self, config: &str, count: usize, used: usize) -> Result<(Server, PathBuf)> {
        let folder = self.empty_folder("gateway")?;
        let (database, secrets) = (folder.join("data/switchyard.db"), self.folder.join("keys"));
        let mut add = Command::new(&self.bench);
        add.args(["keys", "--count", &count.to_string(), "--used", &used.to_string()]);
        add.arg("--database").arg(&database).arg("--file").arg(&secrets);
        process::run(&mut add).context("the keys cannot be written")?;
        Ok((self.gateway_in(&folder, config)?, secrets))
    }

    fn gateway_in(&self, folder: &Path, config: &str) -> Result<Server> {
        let (port, file) = (free_port()?, folder.join("gateway.yaml"));
        fs::write(&file, config)?;
        let mut command = with_many_files(&self.gateway);
        // Nothing of the user's own: neither keys nor proxies.
        command.env_clear();
        command
            .env("GATEWAY_CONFIG", &file)
            .env("DATA_DIR", folder.join("data"))
            .env("PORT", port.to_string())
            .env("MASTER_KEY", MASTER_KEY)
            .env("LOG_LEVEL", "warn");
        let mut gateway = Server::start(&mut command, port, true, &folder.join("log"))?;
        gateway.until("be ready", || {
            http::request("GET", port, "/readyz", MASTER_KEY, "").is_ok()
        })?;
        Ok(gateway)
    }

    /// So many virtual keys of a gateway, one a line.
    pub(super) fn keys(&self, gateway: &Server, count: usize) -> Result<PathBuf> {
        let mut keys = String::new();
        for number in 0..count {
            let body = format!("{{\"name\": \"bench {number}\"}}");
            let answer = http::request("POST", gateway.port, "/admin/keys", MASTER_KEY, &body)?;
            let answer: Value = serde_json::from_str(&answer)?;
            keys.push_str(answer["key"].as_str().context("the new key is not in the answer")?);
            keys.push('\n');
        }
        let file = self.folder.join("keys");
        fs::write(&file, keys)?;
        Ok(file)
    }

    /// Records that the gateway could not keep: there are to be none.
    pub(super) fn shed(&self, gateway: &Server) -> Result<f64> {
        let metrics = http::request("GET", gateway.port, "/metrics", MASTER_KEY, "")?;
        let line = metrics.lines().find(|line| line.starts_with("gateway_records_shed"));
        let value = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
        value.context("there is no gateway_records_shed")
    }

    /// Runs `load` or `hold` against a server.
    pub(super) fn ask(&self, command: &str, server: &Server, args: &[String]) -> Result<Figures> {
        let mut bench = with_many_files(&self.bench);
        bench
            .args([command, "--to", &format!("127.0.0.1:{}", server.port)])
            .args(args);
        if let Some(pid) = server.pid() {
            bench.args(["--pid", &pid.to_string()]);
        }
        let output = bench.stderr(Stdio::inherit()).output()?;
        if !output.status.success() {
            bail!("the load failed ({})", output.status);
        }
        Figures::read(&String::from_utf8_lossy(&output.stdout))
    }

    fn empty_folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.folder.join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
        }
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        Ok(folder)
    }

    /// Takes away what the programs have written.
    pub(crate) fn tidy(&self) {
        // What cannot be removed is removed before the next start.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A configuration of so many targets under one strategy, all of them the mock.
pub(crate) fn config(mock: &Server, mode: &str, targets: usize) -> String {
    let provider = |number| {
        format!(
            "  - {{id: p{number}, kind: openai, base_url: 'http://127.0.0.1:{}/v1', api_key: sk-bench}}\n",
            mock.port
        )
    };
    let providers: String = (0..targets).map(provider).collect();
    let names: Vec<String> = (0..targets).map(|number| format!("p{number}")).collect();
    format!(
        "strategy: {{mode: {mode}}}\ntargets: [{}]\nproviders:\n{providers}",
        names.join(", ")
    )
}
