// Canvases at the screen's own resolution, and images drawn onto them.

/** Smallest number of device pixels per CSS pixel in saved pictures. */
const MIN_SAVED_RESOLUTION = 2;
let finer = 0;

/** Number of device pixels per CSS pixel. */
export const resolution = () => Math.max(finer, devicePixelRatio || 1);
export const device = (length: number) => Math.max(1, Math.round(length * resolution()));

/** Draws at the resolution of saved pictures, for a canvas that is read immediately; then restores the resolution. */
export function atSavedResolution(draw: () => void): void {
  finer = MIN_SAVED_RESOLUTION;
  draw();
  setTimeout(() => {
    finer = 0;
    draw();
  });
}

/** Sizes a canvas; drawing is in CSS pixels afterwards. */
export function sized(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
  const [w, h] = [device(width), device(height)];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.height = `${height}px`;
  }
  const pen = canvas.getContext("2d")!;
  pen.setTransform(resolution(), 0, 0, resolution(), 0, 0);
  return pen;
}

/** Image data that is reused while its size does not change, so that painting does not allocate memory. */
export class ImageBuffer {
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

  /** Draws the image at a position in CSS pixels; its size is in device pixels. */
  put(pen: CanvasRenderingContext2D, x: number, y: number): void {
    pen.putImageData(this.image, Math.round(x * resolution()), Math.round(y * resolution()));
  }
}
