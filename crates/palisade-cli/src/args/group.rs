//! The options of commands that several processes can share.

use super::*;

/// Options about sharing the work with other processes.
#[derive(Clone, Debug, Default, Args)]
pub struct GroupArgs {
    /// Share the work among this many processes on this machine
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=MAX_PROCESSES),
        help_heading = "Several processes",
        conflicts_with = "hosts"
    )]
    pub processes: Option<u32>,
    /// Share it with processes on other machines: a file with one HOST:PORT per line, the same everywhere
    #[arg(long, value_name = "FILE", help_heading = "Several processes", requires = "process")]
    pub hosts: Option<PathBuf>,
    /// Which line of the hosts file is this process, from 0; process 0 prints the answer
    #[arg(long, value_name = "I", help_heading = "Several processes", requires = "hosts")]
    pub process: Option<usize>,
}

/// More processes than this are a mistake.
const MAX_PROCESSES: i64 = 1024;

impl GroupArgs {
    /// Whether the work is shared.
    pub fn is_wanted(&self) -> bool {
        self.processes.is_some() || self.hosts.is_some()
    }

    /// What the words of a command line say about `--hosts` and `--process`, although they are wrong in another place. An option
    /// that does not exist is taken for one without a value.
    pub fn recognise(words: &[OsString]) -> Option<GroupArgs> {
        let palisade = command();
        let mut of_command: Option<&clap::Command> = None;
        let mut found = GroupArgs::default();
        let mut words = words.iter().skip(1);
        while let Some(word) = words.next().filter(|word| *word != "--") {
            let word = word.to_string_lossy();
            let (name, value) =
                word.split_once('=').map_or((&*word, None), |(name, value)| (name, Some(value)));
            let is_this = |option: &&clap::Arg| match name.strip_prefix("--") {
                Some(long) => option.get_long() == Some(long),
                None => option.get_short().is_some_and(|short| *name == format!("-{short}")),
            };
            if !name.starts_with('-') {
                match of_command {
                    None => of_command = Some(palisade.find_subcommand(name)?),
                    // What follows is the command line of a program.
                    Some(command) if command.get_name() == "run" => break,
                    Some(_) => {}
                }
                continue;
            }
            let mut options =
                palisade.get_arguments().chain(of_command.iter().flat_map(|command| command.get_arguments()));
            let Some(option) = options.find(is_this).filter(|option| option.get_action().takes_values())
            else {
                continue;
            };
            let value = value.map(OsString::from).or_else(|| words.next().cloned())?;
            match option.get_id().as_str() {
                "hosts" => found.hosts = Some(value.into()),
                "process" => found.process = Some(value.to_str()?.parse().ok()?),
                _ => {}
            }
        }
        (found.hosts.is_some() && found.process.is_some()).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_process_are_recognised_beside_mistakes() {
        let check = |line: &str, expected: Option<(&str, usize)>| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let found = GroupArgs::recognise(&words);
            let found = found.and_then(|found| Some((found.hosts?, found.process?)));
            assert_eq!(found, expected.map(|(hosts, process)| (PathBuf::from(hosts), process)), "{line}");
        };
        check("palisade check --hosts h --process 1 --modle sc a.pal", Some(("h", 1)));
        check("palisade check --modle=sc a.pal --hosts=h --process=2", Some(("h", 2)));
        check("palisade --timeout 3 check -D N=3 --model --hosts --process 1", None);
        check("palisade --timeout x check --hosts h --process 1", Some(("h", 1)));
        check("palisade check --hosts h --process one", None);
        check("palisade run --wrong --hosts h --process 1 -- test", Some(("h", 1)));
        check("palisade run --wrong test --hosts h --process 1", None);
        check("palisade run --wrong -- test --hosts h --process 1", None);
        check("palisade robust --hosts h --process 1", None);
        check("palisade chekc --hosts h --process 1", None);
    }
}
