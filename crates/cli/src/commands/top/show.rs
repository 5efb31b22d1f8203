//! The event loop of `top`: follows the profile, handles keys, draws.

use super::draw;
use super::figures::{Figures, plain};
use super::recorder::Recorder;
use super::screen::Screen;
use crate::output;
use anyhow::{Context, bail};
use nodewise_linux::signals::{SIGHUP, SIGINT, SIGTERM, Signals};
use nodewise_pipeline::{self as followed, Followed, Look};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

/// Longest time between two updates; keys are handled at once.
const REFRESH_INTERVAL: Duration = Duration::from_millis(100);
/// Longest wait for a printed screen: the kernel first scans a program after about a second, then again after at most a
/// minute, and never while it sleeps.
const LONGEST_WAIT: Duration = Duration::from_secs(90);
/// Lines of a printed screen.
const PRINTED_LINES: u16 = 40;

/// A change of the profile.
enum Update {
    Figures(Box<Figures>),
    Message(String),
    Live(bool),
}

/// Shows the profile until the user quits; restores the terminal in any case.
pub fn live(profile: Followed<Figures>, mut recorder: Option<Recorder>) -> anyhow::Result<()> {
    let signals = Signals::block(&[SIGINT, SIGTERM, SIGHUP]).context("cannot wait for signals")?;
    let mut profile = profile;
    let mut screen = Screen {
        colour: output::Screen::of_stdout().colour,
        ..Screen::default()
    };
    show_first(&mut profile, recorder.is_some(), &mut screen)?;
    let updates = follow(profile);
    let mut terminal = ratatui::try_init().context("cannot use this terminal")?;
    let shown = event_loop(&mut terminal, &mut screen, &updates, &signals, recorder.as_mut());
    ratatui::restore();
    shown
}

/// Reads the profile for the first time, so that an error is reported before the screen is set up.
fn show_first(profile: &mut Followed<Figures>, recorded: bool, screen: &mut Screen) -> anyhow::Result<()> {
    match profile.look() {
        Look::New(figures) => screen.update(figures),
        Look::Waits(why) if recorded || profile.live() => screen.message = Some(why),
        Look::Waits(why) => bail!("{why}"),
        Look::Failed(error) => return Err(error),
        Look::Same => {}
    }
    screen.live = recorded || profile.live();
    Ok(())
}

/// Reads the profile in a thread whenever it changes, so that keys are not delayed.
fn follow(mut profile: Followed<Figures>) -> Receiver<Update> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        loop {
            let began = Instant::now();
            let found = match profile.look() {
                Look::Same => None,
                Look::New(figures) => Some(Update::Figures(Box::new(figures))),
                Look::Waits(why) => Some(Update::Message(why)),
                Look::Failed(error) => Some(Update::Message(format!("{error:#}"))),
            };
            let updates = found.into_iter().chain([Update::Live(profile.live())]);
            if updates.map(|n| sender.send(n)).any(|sent| sent.is_err()) {
                return; // the screen has been closed
            }
            std::thread::sleep(followed::pause_after(began));
        }
    });
    receiver
}

fn event_loop(
    terminal: &mut ratatui::DefaultTerminal,
    screen: &mut Screen,
    updates: &Receiver<Update>,
    signals: &Signals,
    mut recorder: Option<&mut Recorder>,
) -> anyhow::Result<()> {
    loop {
        apply_updates(updates, screen)?;
        if let Some(last_message) = recorder.as_mut().and_then(|r| r.ended()) {
            if screen.figures.is_none() && !screen.live {
                bail!("{last_message}");
            }
            screen.message = Some(plain(&last_message));
        }
        terminal.draw(|frame| draw::draw(frame, screen))?;
        if signals.wait(Duration::ZERO).is_some() || key_quits(screen)? {
            return Ok(());
        }
    }
}

/// Applies all changes that have arrived.
fn apply_updates(updates: &Receiver<Update>, screen: &mut Screen) -> anyhow::Result<()> {
    loop {
        match updates.try_recv() {
            Ok(Update::Figures(figures)) => screen.update(*figures),
            Ok(Update::Message(message)) => screen.message = Some(plain(&message)),
            Ok(Update::Live(live)) => screen.live = live,
            Err(TryRecvError::Empty) => return Ok(()),
            Err(TryRecvError::Disconnected) => bail!("the profile cannot be followed any longer"),
        }
    }
}

/// Waits for a key for one turn; returns whether to quit.
fn key_quits(screen: &mut Screen) -> anyhow::Result<bool> {
    if !event::poll(REFRESH_INTERVAL)? {
        return Ok(false);
    }
    let Event::Key(key) = event::read()? else {
        return Ok(false); // the terminal was resized: each turn draws anyway
    };
    let interrupted = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    Ok(interrupted || key.kind != KeyEventKind::Release && screen.press(key.code))
}

/// Prints one screen as text, as soon as there are figures.
pub fn once(mut profile: Followed<Figures>, mut recorder: Option<Recorder>) -> anyhow::Result<()> {
    let signals = Signals::block(&[SIGINT, SIGTERM, SIGHUP]).context("cannot wait for signals")?;
    let mut screen = Screen {
        printed: true,
        ..Screen::default()
    };
    let began = Instant::now();
    while screen.figures.is_none() {
        let ended = recorder.as_mut().and_then(Recorder::ended);
        match profile.look() {
            Look::New(figures) => screen.update(figures),
            Look::Failed(error) => return Err(ended.map_or(error, anyhow::Error::msg)),
            Look::Waits(_) | Look::Same if ended.is_some() => bail!("{}", ended.unwrap_or_default()),
            Look::Waits(why) if recorder.is_none() => bail!("{why}"),
            Look::Waits(why) if began.elapsed() > LONGEST_WAIT => {
                bail!("nothing to show after {} s: {why}", LONGEST_WAIT.as_secs())
            }
            Look::Waits(_) | Look::Same if signals.wait(REFRESH_INTERVAL).is_some() => bail!("stopped"),
            Look::Waits(_) | Look::Same => {}
        }
    }
    screen.live = profile.live();
    let width = u16::try_from(output::Screen::of_stdout().width).unwrap_or(u16::MAX);
    let mut terminal = Terminal::new(TestBackend::new(width.min(300), PRINTED_LINES))?;
    terminal.draw(|frame| draw::draw(frame, &screen))?;
    output::print(&draw::text(terminal.backend().buffer()))
}
