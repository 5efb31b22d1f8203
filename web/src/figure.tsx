// The frame of a figure: title, what it is, and the ways to take it along.

import type { ComponentChildren } from "preact";
import { useContext, useRef, useState } from "preact/hooks";
import { csv, type Row } from "./export/csv";
import { png, svg } from "./export/picture";
import { save } from "./export/save";
import { Caption } from "./caption";

export interface FigureProps {
  /** A word for the file's name; also an anchor. */
  id: string;
  title: string;
  /** One or two plain sentences: what is seen, in which unit. */
  what: ComponentChildren;
  /** What a picture shows; without it, all that is in the frame. */
  element?: () => Element | null;
  /** The figures; the first row are heads with units. */
  rows: () => Row[];
  /** Choices that belong to the figure; they are not in its pictures. */
  controls?: ComponentChildren;
  children: ComponentChildren;
}

type Format = "PNG" | "SVG" | "CSV";

export function Figure({ id, title, what, element, rows, controls, children }: FigureProps) {
  const body = useRef<HTMLDivElement>(null);
  const caption = useContext(Caption);
  const [trouble, say] = useState("");
  const take = async (format: Format) => {
    try {
      const name = `${caption.file}-${id}.${format.toLowerCase()}`;
      if (format === "CSV") return save(name, new Blob([csv(rows())], { type: "text/csv;charset=utf-8" }));
      const drawn = element?.() ?? body.current;
      if (!drawn) throw new Error("there is nothing drawn yet");
      const picture = svg(drawn, { title, caption: caption.line });
      save(name, format === "SVG" ? new Blob([picture.text], { type: "image/svg+xml" }) : await png(picture));
      say("");
    } catch (error) {
      say(`No ${format}: ${error instanceof Error ? error.message : String(error)}.`);
    }
  };
  return (
    <figure class="figure" id={`figure-${id}`} aria-labelledby={`title-${id}`} data-figure={id}>
      <figcaption>
        <h3 id={`title-${id}`}>{title}</h3>
        <details class="what">
          <summary>What is this?</summary>
          <p>{what}</p>
        </details>
        {controls && <div class="controls">{controls}</div>}
        <div class="exports" role="group" aria-label={`Save “${title}”`}>
          {(["PNG", "SVG", "CSV"] as const).map((format) => (
            <button type="button" key={format} data-export={format} aria-label={`Save as ${format}`} onClick={() => void take(format)}>
              {format}
            </button>
          ))}
        </div>
      </figcaption>
      {trouble && (
        <p class="trouble" role="alert">
          {trouble}
        </p>
      )}
      <div class="body" ref={body}>
        {children}
      </div>
    </figure>
  );
}
