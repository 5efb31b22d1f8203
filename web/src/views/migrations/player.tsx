// Playback of the run: all figures of the view show the run up to the same time.

import { useEffect, useRef, useState } from "preact/hooks";
import { seconds } from "../../format";
import { useKeys } from "../../keyboard";
import { update, type State } from "../../state";

/** Duration of the playback of a whole run, seconds. */
const PLAYBACK_SECONDS = 16;

export interface Playing {
  /** Time up to which the run is shown, seconds since the recording began. */
  now: number;
  end: number;
  playing: boolean;
  toggle: () => void;
  seek: (now: number) => void;
}

const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** The time in the address; null, which stands for the end, if the address has none within the run. */
function start(state: State, end: number): number | null {
  const at = Number(state.until ?? NaN);
  return at >= 0 && at < end ? at : null;
}

/** Playback state. At the end of a live session, the time follows the end. When paused, the time is in the address. */
export function usePlayer(end: number, state: State): Playing {
  const [at, set] = useState<number | null>(() => start(state, end));
  const [playing, play] = useState(false);
  const now = at === null ? end : Math.min(at, end);
  const latest = useRef(now);
  latest.current = now;
  useEffect(() => {
    if (!playing) return;
    let last = performance.now();
    // With `prefers-reduced-motion`, playback advances in few, large steps.
    const pause = still() ? 800 : 33;
    const timer = setInterval(() => {
      const time = performance.now();
      const next = latest.current + ((time - last) / 1000 / PLAYBACK_SECONDS) * end;
      last = time;
      if (next >= end) {
        play(false);
        set(null);
      } else set(next);
    }, pause);
    return () => clearInterval(timer);
  }, [playing, end]);
  useEffect(() => {
    if (playing) return;
    // Dragging the slider changes the time often; the address is updated only after a pause.
    const timer = setTimeout(() => update({ until: at === null ? undefined : at.toFixed(3) }, true), 300);
    return () => clearTimeout(timer);
  }, [at, playing]);
  const toggle = () => {
    if (!playing && now >= end) set(0);
    play(!playing);
  };
  useKeys((key) => {
    if (key !== " " || document.activeElement?.matches("button, summary, a")) return false;
    toggle();
    return true;
  });
  const seek = (to: number) => {
    play(false);
    set(to >= end ? null : to);
  };
  return { now, end, playing, toggle, seek };
}

export function Player({ player, children }: { player: Playing; children?: preact.ComponentChildren }) {
  const { now, end, playing, toggle, seek } = player;
  return (
    <div class="card player">
      <button type="button" onClick={toggle} aria-pressed={playing}>
        {playing ? "❚❚ Pause" : "▶ Play"}
      </button>
      <input
        type="range"
        min="0"
        max={end}
        step={end / 1000}
        value={now}
        aria-label="Shown up to this time"
        aria-valuetext={seconds(now)}
        onInput={(e) => seek(Number(e.currentTarget.value))}
      />
      <output>
        {seconds(now)} <span class="muted">of {seconds(end)}</span>
      </output>
      {children}
    </div>
  );
}
