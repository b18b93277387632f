//! Whether a download writes no other file than its words name: by options that are known, since one that is not may take the
//! name from an address, a list or the server.

use super::super::shell::Word;
use super::commit::{Argument, Found, Subcommand};

const CURL: Subcommand = Subcommand {
    name: "curl",
    options: "silent/s show-error/S location/L fail/f fail-with-body include/i head/I verbose/v get/G compressed globoff/g \
        ipv4/4 ipv6/6 insecure/k no-progress-meter progress-bar/# request=/X header=/H data=/d data-raw= data-binary= \
        data-urlencode= json= user-agent=/A user=/u max-time=/m connect-timeout= retry= retry-delay= retry-max-time= \
        retry-all-errors retry-connrefused referer=/e range=/r cookie=/b form=/F upload-file=/T url= http1.0/0 http1.1 http2 \
        max-redirs= no-buffer/N path-as-is write-out=/w output=/o continue-at=/C cacert= cert= key= tlsv1.2 tlsv1.3 proto= \
        proto-redir= limit-rate= fail-early",
};

/// Without `output-document` it makes a file of a name of its own.
const WGET: Subcommand = Subcommand {
    name: "wget",
    options: "quiet/q verbose/v no-verbose output-document=/O timeout=/T tries=/t header= user-agent=/U no-check-certificate \
        show-progress spider method= post-data= body-data= user= password= server-response/S inet4-only/4 inet6-only/6 \
        continue/c max-redirect= limit-rate= referer= no-cache no-cookies no-hsts",
};

pub(in crate::permission) fn writes_what_it_names(words: &[Word]) -> bool {
    let name = words.first().and_then(Word::literal).unwrap_or_default();
    let (wget, table) = match name.rsplit('/').next() {
        Some("curl") => (false, CURL),
        Some("wget") => (true, WGET),
        _ => return false,
    };
    // Two letters in one.
    let given = words[1..].iter().filter(|word| !(wget && word.known() == "-nv"));
    let given: Vec<Argument> = given.map(|word| Argument::of(&word.possible())).collect();
    let Ok(found) = table.read(&given) else { return false };
    let listed = |one: &Found| !one.acts && (one.name != "output" || !one.value.contains('#'));
    let told = |one: &Found| one.name != "write-out" || !one.value.contains("%output") && !one.value.starts_with('@');
    let named = !wget || found.iter().any(|one| matches!(one.name.as_str(), "output-document" | "spider"));
    named && found.iter().all(|one| listed(one) && told(one))
}
