// A node's colour and name, wherever moves are drawn.

import { css, palette } from "../../palette";
import { useTheme } from "../../theme";

/** CSS colours of nodes, and the colour of text on each. */
export function useNodeColours(): { fill: (node: number) => string; ink: (node: number) => string } {
  const { node } = palette(useTheme() === "dark");
  const light = (n: number) => {
    const [r, g, b] = node(n).map((part) => (part / 255) ** 2.2) as [number, number, number];
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  return { fill: (n) => css(node(n)), ink: (n) => (light(n) > 0.2 ? "#11151a" : "#ffffff") };
}

export function NodeLegend({ nodes }: { nodes: number }) {
  const { fill } = useNodeColours();
  return (
    <div class="legend" aria-hidden="true">
      {Array.from({ length: Math.min(nodes, 32) }, (_, n) => (
        <span key={n}>
          <i class="swatch" style={{ background: fill(n) }} />
          node {n}
        </span>
      ))}
    </div>
  );
}
