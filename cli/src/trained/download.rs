//! Resumable download of a file from a package index with the simple interface (PEP 503).

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use reqwest::{Certificate, Client, StatusCode, Url, header};

/// The index, as pip has it in its variable `PIP_INDEX_URL`.
const INDEX_VARIABLE: &str = "PIP_INDEX_URL";
const DEFAULT_INDEX: &str = "https://pypi.org/simple";
/// The file with further root certificates, as pip has it.
const CERTIFICATES_VARIABLE: &str = "PIP_CERT";

const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum time without a byte.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// Number of tries; each resumes where the last one ended.
const TRIES: usize = 3;

/// A file of a project on the index.
pub(super) struct Download {
    /// The project's normalised name.
    pub(super) project: &'static str,
    /// The file's name.
    pub(super) file: &'static str,
    /// The file's length.
    pub(super) bytes: u64,
    /// The file's SHA-256, for the caller.
    pub(super) sha256: &'static str,
}

impl Download {
    /// Downloads the file to `to` from the configured index. Continues a file that is there.
    pub(super) async fn fetch(&self, to: &Path) -> Result<()> {
        let index = std::env::var(INDEX_VARIABLE).unwrap_or_else(|_| DEFAULT_INDEX.to_owned());
        self.fetch_from(&index, to).await
    }

    async fn fetch_from(&self, index: &str, to: &Path) -> Result<()> {
        let client = client()?;
        let url = self.find(&client, index).await?;
        let mut result = Ok(());
        for _ in 0..TRIES {
            result = self.fetch_rest(&client, &url, to).await;
            if result.is_ok() {
                break;
            }
        }
        result.with_context(|| format!("{url}"))
    }

    /// The file's address, from the project's page on the index.
    async fn find(&self, client: &Client, index: &str) -> Result<Url> {
        let page = format!("{}/{}/", index.trim_end_matches('/'), self.project);
        let page = Url::parse(&page).with_context(|| format!("{INDEX_VARIABLE}: {index:?}"))?;
        let response = client.get(page.clone()).header(header::ACCEPT, "text/html").send().await?;
        let response = response.error_for_status()?;
        // Links may be relative to the page after redirections.
        let base = response.url().clone();
        let text = response.text().await?;
        let link = link_to(&text, self.file);
        let link = link.with_context(|| format!("{page} has no {}", self.file))?;
        Ok(base.join(&link)?)
    }

    /// Downloads the bytes after those that `to` has.
    async fn fetch_rest(&self, client: &Client, url: &Url, to: &Path) -> Result<()> {
        let mut file = File::options().create(true).read(true).append(true).open(to)?;
        let mut done = file.seek(SeekFrom::End(0))?;
        if done == self.bytes {
            return Ok(());
        }
        if done > self.bytes {
            file.set_len(0)?;
            done = 0;
        }
        let mut request = client.get(url.clone());
        if done > 0 {
            request = request.header(header::RANGE, format!("bytes={done}-"));
        }
        let mut response = request.send().await?.error_for_status()?;
        if response.status() != StatusCode::PARTIAL_CONTENT && done > 0 {
            // The server sends the whole file.
            file.set_len(0)?;
            done = 0;
        }
        let mut progress = Progress::new(self.file, done, self.bytes);
        while let Some(bytes) = response.chunk().await? {
            done += bytes.len() as u64;
            if done > self.bytes {
                file.set_len(0)?;
                bail!("more than the expected {} bytes", self.bytes);
            }
            file.write_all(&bytes)?;
            progress.show(done);
        }
        progress.end();
        if done < self.bytes {
            bail!("{done} of {} bytes", self.bytes);
        }
        Ok(())
    }
}

/// A client that trusts the web's roots, the system's, and those of pip's configuration.
fn client() -> Result<Client> {
    let mut builder = Client::builder()
        .user_agent(concat!("louver/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(READ_TIMEOUT);
    // Faults of single certificates of the system do not matter here.
    for certificate in rustls_native_certs::load_native_certs().certs {
        if let Ok(certificate) = Certificate::from_der(&certificate) {
            builder = builder.add_root_certificate(certificate);
        }
    }
    if let Some(path) = std::env::var_os(CERTIFICATES_VARIABLE) {
        let context = || format!("{CERTIFICATES_VARIABLE}: {}", Path::new(&path).display());
        let text = std::fs::read(&path).with_context(context)?;
        for certificate in Certificate::from_pem_bundle(&text).with_context(context)? {
            builder = builder.add_root_certificate(certificate);
        }
    }
    Ok(builder.build()?)
}

/// The target of the link to a file on a page of an index.
fn link_to(page: &str, file: &str) -> Option<String> {
    let targets = page.split("href=").skip(1).filter_map(|rest| {
        let quote = rest.chars().next().filter(|c| *c == '"' || *c == '\'')?;
        rest[1..].split(quote).next()
    });
    let name = |target: &str| {
        let path = target.split(['#', '?']).next().unwrap_or(target);
        path.rsplit('/').next().unwrap_or(path).to_owned()
    };
    targets.filter(|target| name(target) == file).map(|target| target.replace("&amp;", "&")).next()
}

/// Progress on standard error: a bar on a terminal, a line otherwise.
struct Progress {
    file: &'static str,
    started: Instant,
    shown: Option<Instant>,
    from: u64,
    total: u64,
    is_terminal: bool,
}

/// Minimum time between two drawings of the bar.
const REDRAW: Duration = Duration::from_millis(100);
const BAR_WIDTH: u64 = 30;

impl Progress {
    fn new(file: &'static str, from: u64, total: u64) -> Progress {
        let is_terminal = super::has_terminal();
        if !is_terminal {
            let resumed = if from > 0 { ", resumed" } else { "" };
            eprintln!("downloading {file} ({}{resumed})", megabytes(total));
        }
        Progress { file, started: Instant::now(), shown: None, from, total, is_terminal }
    }

    fn show(&mut self, done: u64) {
        let is_due = self.shown.is_none_or(|shown| shown.elapsed() >= REDRAW);
        if self.is_terminal && (is_due || done == self.total) {
            self.shown = Some(Instant::now());
            eprint!("\r{}", self.bar(done, self.started.elapsed()));
        }
    }

    /// The bar after some time.
    fn bar(&self, done: u64, elapsed: Duration) -> String {
        let filled = usize::try_from(done * BAR_WIDTH / self.total.max(1)).unwrap_or(0);
        let rate = (done - self.from) as f64 / elapsed.as_secs_f64().max(0.001) / 1e6;
        format!(
            "{} [{:<width$}] {:>3} % of {}, {rate:.1} MB/s ",
            self.file,
            "#".repeat(filled),
            done * 100 / self.total.max(1),
            megabytes(self.total),
            width = BAR_WIDTH as usize,
        )
    }

    fn end(&self) {
        if self.is_terminal {
            eprintln!();
        }
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{:.0} MB", bytes as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;

    use super::*;

    const BODY: &str = "0123456789";

    /// An index that breaks off the first answer with the file after four bytes and answers a range
    /// then. Returns its address and, at the end, the paths and ranges of the requests.
    fn index(answers: usize) -> (String, std::thread::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = format!("http://{}/simple", listener.local_addr().unwrap());
        let serve = move || {
            let mut seen = Vec::new();
            for _ in 0..answers {
                let (mut stream, _) = listener.accept().unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let path = lines.next().unwrap().unwrap().split(' ').nth(1).unwrap().to_owned();
                let headers = lines.map_while(Result::ok).take_while(|line| !line.is_empty());
                let range = headers.filter_map(|line| {
                    let (name, value) = line.split_once(": ")?;
                    name.eq_ignore_ascii_case("range").then(|| value.to_owned())
                });
                let range = range.last().unwrap_or_default();
                let from = range.strip_prefix("bytes=").and_then(|r| r.strip_suffix('-'));
                let answer = match (path.as_str(), from) {
                    ("/simple/x/", _) => {
                        let page = "<a href=\"../../files/x.whl#sha256=0\">x.whl</a>";
                        format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{page}", page.len())
                    }
                    (_, None) => {
                        format!("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{}", &BODY[..4])
                    }
                    (_, Some(from)) => {
                        let rest = &BODY[from.parse::<usize>().unwrap()..];
                        let status = "206 Partial Content";
                        format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{rest}", rest.len())
                    }
                };
                stream
                    .write_all(answer.replacen("\r\n", "\r\nconnection: close\r\n", 1).as_bytes())
                    .unwrap();
                seen.push(format!("{path} {range}"));
            }
            seen
        };
        (address, std::thread::spawn(serve))
    }

    #[tokio::test]
    async fn downloads_are_resumed() {
        let folder = std::env::temp_dir().join(format!("louver-download-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let to = folder.join("x.whl.part");
        let download = Download { project: "x", file: "x.whl", bytes: 10, sha256: "" };
        let (address, server) = index(3);
        download.fetch_from(&address, &to).await.unwrap();
        assert_eq!(std::fs::read_to_string(&to).unwrap(), BODY);
        assert_eq!(
            server.join().unwrap(),
            ["/simple/x/ ", "/files/x.whl ", "/files/x.whl bytes=4-"]
        );
        // A file that is there is complete or continued.
        let (address, server) = index(1);
        download.fetch_from(&address, &to).await.unwrap();
        assert_eq!(server.join().unwrap().len(), 1);
        // Without the file on the index, and without an index.
        let (address, _) = index(1);
        let missing = Download { file: "y.whl", ..download };
        let error = missing.fetch_from(&address, &to).await.unwrap_err().to_string();
        assert!(error.contains("has no y.whl"), "{error}");
        assert!(missing.fetch_from("http://127.0.0.1:9/simple", &to).await.is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn links_are_found() {
        let page = "<a href=\"https://files.example/a/x-1.tar.gz#sha256=00\">x</a>\n\
                    <a data-x href='../../packages/x-1-any.whl?a=1&amp;b=2#sha256=11'>x</a>\
                    <a href=\"x-1-any.whl.metadata\">";
        let link = |file: &str| link_to(page, file);
        assert_eq!(
            link("x-1.tar.gz").as_deref(),
            Some("https://files.example/a/x-1.tar.gz#sha256=00")
        );
        assert_eq!(
            link("x-1-any.whl").as_deref(),
            Some("../../packages/x-1-any.whl?a=1&b=2#sha256=11")
        );
        assert_eq!(link("x-2-any.whl"), None);
    }

    #[test]
    fn the_bar_shows_share_and_rate() {
        let progress = Progress {
            file: "x.whl",
            started: Instant::now(),
            shown: None,
            from: 1_000_000,
            total: 4_000_000,
            is_terminal: false,
        };
        assert_eq!(
            progress.bar(3_000_000, Duration::from_secs(2)),
            "x.whl [######################        ]  75 % of 4 MB, 1.0 MB/s "
        );
    }
}
