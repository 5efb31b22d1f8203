// The legend of each colour mode.

import { count } from "../../format";
import { css, mix, type Palette, type Rgb } from "../../palette";
import type { Mode } from "../../paint/strips";

export function Key({ colour, children }: { colour: Rgb; children: preact.ComponentChildren }) {
  return (
    <span class="key">
      <i class="chip" style={{ background: css(colour) }} />
      {children}
    </span>
  );
}

/** A mark that is empty inside. */
export function Outline({ colour, children }: { colour: Rgb; children: preact.ComponentChildren }) {
  return (
    <span class="key">
      <svg class="chip" viewBox="0 0 11 11" aria-hidden="true">
        <rect x="1" y="1" width="9" height="9" fill="none" stroke={css(colour)} stroke-width="2" />
      </svg>
      {children}
    </span>
  );
}

/** A ramp from one end to the other. */
export function Ramp({ from, to, colour }: { from: string; to: string; colour: (share: number) => Rgb }) {
  const n = 24;
  return (
    <span class="key ramp">
      {from}
      <svg viewBox={`0 0 ${n} 1`} preserveAspectRatio="none" aria-hidden="true">
        {Array.from({ length: n }, (_, i) => (
          <rect key={i} x={i} width="1.05" height="1" fill={css(colour(i / (n - 1)))} />
        ))}
      </svg>
      {to}
    </span>
  );
}

export function NodeKeys({ nodes, palette }: { nodes: number; palette: Palette }) {
  const shown = Math.min(nodes, 32);
  return (
    <>
      {Array.from({ length: shown }, (_, node) => (
        <Key key={node} colour={palette.node(node)}>
          node {node}
        </Key>
      ))}
      {nodes > shown && <span class="key">… {nodes} nodes</span>}
    </>
  );
}

export function Legend({
  mode,
  nodes,
  classes,
  scale,
  palette,
  unit,
}: {
  mode: Mode;
  nodes: number;
  classes: readonly string[];
  scale: { least: number; most: number };
  palette: Palette;
  unit: string;
}) {
  const quantities =
    scale.most > 0 ? (
      <Ramp
        from={`${count(Math.max(1, Math.round(scale.least)))}`}
        to={`${count(Math.round(scale.most))} ${unit} a page`}
        colour={palette.quantity}
      />
    ) : null;
  const spread = nodes > 1 && <Key colour={palette.spread}>spread evenly</Key>;
  return (
    <div class="legend" role="group" aria-label="Colours of the strips">
      <b>Strips</b>
      {mode === "node" && <NodeKeys nodes={nodes} palette={palette} />}
      {mode === "node" && spread}
      {mode === "local" && <Ramp from="mappings: all remote" to="all local" colour={palette.locality} />}
      {(mode === "local" || mode === "accesses") && quantities}
      {mode === "accesses" && <span class="key">mappings: those that are remote</span>}
      {mode === "class" &&
        classes.map((name, i) => (
          <Key key={name} colour={palette.classes[i] ?? palette.muted}>
            {name}
          </Key>
        ))}
      {mode === "class" && <span class="key">mappings:</span>}
      {mode === "class" && <NodeKeys nodes={nodes} palette={palette} />}
      {mode === "exclusivity" && <Ramp from="0 %" to="100 % by one node; mappings: local" colour={palette.quantity} />}
    </div>
  );
}

export function ReachLegend({ palette }: { palette: Palette }) {
  return (
    <div class="legend" role="group" aria-label="Colours of the page × thread figure">
      <b>Threads</b>
      <Ramp from="remote" to="local" colour={(share) => mix(palette.remote, palette.local, share)} />
      <Key colour={palette.home}>lives on this node</Key>
      <span class="key">the deeper, the more accesses; colour outside the grey reaches across the machine</span>
    </div>
  );
}
