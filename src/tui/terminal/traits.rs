//! What kind of terminal this is, as far as the environment and its answers tell.

/// What the surface must know about the terminal before it writes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Traits {
    /// No control sequences at all: rows are printed one after the other and nothing is drawn again.
    pub plain: bool,
    /// Line feeds inside a scroll region move rows into the scrollback. Where not, the live region is written again
    /// with every insertion. In tmux a region is where it was before a resize that nobody has heard of yet: rows would come
    /// in among older ones, and those be lost.
    pub regions: bool,
    /// A change of width wraps the rows on screen again; otherwise they are cut.
    pub reflows: bool,
    /// Sequences for the outer terminal go through tmux.
    pub tmux: bool,
    /// Shows progress that is sent as OSC 9;4; elsewhere that may be a notification.
    pub progress: bool,
    /// Has answered that it takes the status of programs (OSC 7501).
    pub status: bool,
    pub alert: Alert,
}

/// How a terminal is asked to call its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alert {
    Osc9,
    Osc777,
    Bell,
}

impl Traits {
    /// A terminal as most are.
    pub const USUAL: Traits = Traits {
        plain: false,
        regions: true,
        reflows: true,
        tmux: false,
        progress: false,
        status: false,
        alert: Alert::Bell,
    };

    /// Reads the variables that terminals and multiplexers set; `var` looks one up.
    pub fn detect(var: impl Fn(&str) -> Option<String>) -> Traits {
        let set = |name| var(name).is_some_and(|value| !value.is_empty());
        let term = var("TERM").unwrap_or_default();
        let tmux = set("TMUX") || term.starts_with("tmux");
        let screen = !tmux && (set("STY") || term.starts_with("screen"));
        let cuts = screen || set("XTERM_VERSION") || term == "linux";
        let program = var("TERM_PROGRAM").unwrap_or_default();
        let known = set("WT_SESSION") || var("ConEmuANSI").as_deref() == Some("ON");
        let progress = known || matches!(program.as_str(), "ghostty" | "WezTerm") || term == "xterm-ghostty";
        let plain = term.is_empty() || term == "dumb";
        let nine = matches!(program.as_str(), "iTerm.app" | "ghostty" | "WezTerm" | "kitty")
            || matches!(term.as_str(), "xterm-ghostty" | "xterm-kitty")
            || var("LC_TERMINAL").as_deref() == Some("iTerm2");
        let alert = match (tmux || screen, nine) {
            (true, _) => Alert::Bell,
            (_, true) => Alert::Osc9,
            _ if set("VTE_VERSION") || term.starts_with("foot") || term.starts_with("rxvt") => Alert::Osc777,
            _ => Alert::Bell,
        };
        let regions = !screen && !tmux;
        Traits { plain, regions, reflows: !cuts, tmux, progress: progress && !plain, status: false, alert }
    }

    /// The same, written without control sequences.
    pub fn plain(self) -> Traits {
        Traits { plain: true, progress: false, ..self }
    }

    /// Takes in what the terminal says of itself (XTVERSION), which holds also where the environment does not
    /// travel, as over SSH.
    pub(super) fn learn(&mut self, version: &str) {
        if version.starts_with("XTerm(") {
            self.reflows = false;
        }
        if version.starts_with("tmux") {
            (self.tmux, self.regions, self.reflows, self.alert) = (true, false, true, Alert::Bell);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(vars: &[(&str, &str)], want: Traits) {
        let var = |name: &str| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        assert_eq!(Traits::detect(var), want, "{vars:?}");
    }

    #[test]
    fn the_environment_tells_the_kind() {
        let usual = Traits::USUAL;
        check(&[("TERM", "xterm-256color")], usual);
        check(&[], Traits { plain: true, ..usual });
        check(&[("TERM", "dumb")], Traits { plain: true, ..usual });
        check(&[("TERM", "screen-256color"), ("TMUX", "/tmp/x,1,0")], Traits { regions: false, tmux: true, ..usual });
        check(&[("TERM", "screen")], Traits { regions: false, reflows: false, ..usual });
        check(&[("TERM", "xterm"), ("XTERM_VERSION", "XTerm(390)")], Traits { reflows: false, ..usual });
        let bar = Traits { progress: true, ..usual };
        check(&[("TERM", "xterm-256color"), ("WT_SESSION", "x")], bar);
        let nine = Traits { alert: Alert::Osc9, ..bar };
        check(&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "WezTerm")], nine);
        check(&[("TERM", "xterm-ghostty")], nine);
        check(&[("TERM", "xterm-kitty")], Traits { alert: Alert::Osc9, ..usual });
        let gnome = [("TERM", "xterm-256color"), ("VTE_VERSION", "7600")];
        check(&gnome, Traits { alert: Alert::Osc777, ..usual });
        let inside = [("TERM", "tmux-256color"), ("TMUX", "/tmp/x,1,0"), ("VTE_VERSION", "7600")];
        check(&inside, Traits { regions: false, tmux: true, ..usual });
        check(&[("TERM", "linux")], Traits { reflows: false, ..usual });
        check(&[("TERM", "tmux-256color")], Traits { regions: false, tmux: true, ..usual });
    }

    #[test]
    fn what_the_terminal_says_of_itself_comes_before_the_environment() {
        let inside = Traits { regions: false, tmux: true, ..Traits::USUAL };
        // Over SSH, or with a cleared environment.
        for term in ["xterm-256color", "screen-256color"] {
            let mut traits = Traits::detect(|name| (name == "TERM").then(|| term.to_owned()));
            traits.learn("tmux 3.5a");
            assert_eq!(traits, inside, "{term}");
        }
        let mut traits = Traits::USUAL;
        traits.learn("XTerm(390)");
        assert_eq!(traits, Traits { reflows: false, ..Traits::USUAL });
    }
}
