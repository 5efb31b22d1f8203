// Canvases at the screen's own resolution, and images drawn onto them.

/** Sizes a canvas; drawing is in CSS pixels afterwards. */
export function sized(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
  const scale = devicePixelRatio || 1;
  const [w, h] = [Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale))];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.height = `${height}px`;
  }
  const pen = canvas.getContext("2d")!;
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  return pen;
}

/** Image data that is kept and grows, so that painting allocates nothing. */
export class Plate {
  private image = new ImageData(1, 1);
  pixels = new Uint32Array(1);
  width = 1;
  height = 1;

  fit(width: number, height: number): void {
    if (width === this.width && height === this.height) return;
    this.image = new ImageData(Math.max(1, width), Math.max(1, height));
    this.pixels = new Uint32Array(this.image.data.buffer);
    [this.width, this.height] = [this.image.width, this.image.height];
  }

  /** In CSS pixels; the plate has as many pixels as the screen there. */
  put(pen: CanvasRenderingContext2D, x: number, y: number): void {
    const scale = devicePixelRatio || 1;
    pen.putImageData(this.image, Math.round(x * scale), Math.round(y * scale));
  }
}

export const device = (length: number) => Math.max(1, Math.round(length * (devicePixelRatio || 1)));
