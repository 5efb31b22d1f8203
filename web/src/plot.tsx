// A component for uPlot that follows changes of its width, its data and the theme.

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useWidth } from "./measured";
import { useTheme, variable } from "./theme";

export interface PlotProps {
  data: uPlot.AlignedData;
  /** All options but the size; computed again when the theme changes, because canvases cannot use style sheets. */
  options: (style: (name: string) => string) => Omit<uPlot.Options, "width" | "height">;
  height: number;
  label: string;
}

export function Plot({ data, options, height, label }: PlotProps) {
  const room = useRef<HTMLDivElement>(null);
  const width = useWidth(room);
  const theme = useTheme();
  useEffect(() => {
    if (!room.current) return;
    const plot = new uPlot({ ...options(variable), width, height }, data, room.current);
    plot.ctx.canvas.dataset.drawn = "plot";
    return () => plot.destroy();
  }, [data, width, height, theme]);
  return <div class="plot" ref={room} role="img" aria-label={label} />;
}
