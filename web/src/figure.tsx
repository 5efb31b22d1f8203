// The frame of a figure: title, description, and buttons to save it.

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
  /** Description in one or two sentences: what is shown, in which unit. */
  what: ComponentChildren;
  /** The element that a saved picture contains; by default all content of the frame. */
  element?: () => Element | null;
  /** The figures as a table; the first row contains headings with units. */
  rows: () => Row[];
  /** Controls of the figure; they are not part of saved pictures. */
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
