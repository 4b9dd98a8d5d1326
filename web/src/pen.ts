// What a figure is drawn with: a canvas on the screen, or SVG for a file. Both take the same calls.

export interface Stroke {
  colour: string;
  width: number;
  dash?: number[];
  alpha?: number;
}

export interface Text {
  colour: string;
  size?: number;
  anchor?: 'start' | 'middle' | 'end';
  bold?: boolean;
  /** Turned to read from below. */
  upright?: boolean;
}

export interface Pen {
  /** Pairs of coordinates, joined; NaN begins a new line. */
  line(points: ArrayLike<number>, stroke: Stroke): void;
  area(points: ArrayLike<number>, colour: string, alpha: number): void;
  rect(x: number, y: number, width: number, height: number, fill: string | null, stroke?: Stroke): void;
  /** A marker of one of several shapes. */
  marker(shape: number, x: number, y: number, size: number, fill: string, edge: string): void;
  text(x: number, y: number, text: string, style: Text): void;
  width(text: string, size?: number): number;
  clipped(x: number, y: number, width: number, height: number, draw: () => void): void;
}

export const FONT = "'Noto Sans','DejaVu Sans','Segoe UI','Helvetica Neue',Arial,sans-serif";
const SIZE = 12.5;

/** The corners of a marker around 0, 0; null is a circle. */
const SHAPES: (number[] | null)[] = [
  null,
  [-1, -1, 1, -1, 1, 1, -1, 1],
  [0, -1.25, 1.15, 0.85, -1.15, 0.85],
  [0, -1.3, 1.3, 0, 0, 1.3, -1.3, 0],
  [0, 1.25, 1.15, -0.85, -1.15, -0.85],
];
export const shapeOf = (shape: number): number[] | null => SHAPES[shape % SHAPES.length] ?? null;

export class CanvasPen implements Pen {
  constructor(private readonly at: CanvasRenderingContext2D) {
    at.lineJoin = 'round';
  }

  private trace(points: ArrayLike<number>): void {
    this.at.beginPath();
    let open = false;
    for (let i = 0; i < points.length; i += 2) {
      const [x, y] = [points[i]!, points[i + 1]!];
      if (!(Math.abs(x) < 1e6 && Math.abs(y) < 1e6)) open = false;
      else if (open) this.at.lineTo(x, y);
      else {
        this.at.moveTo(x, y);
        open = true;
      }
    }
  }

  line(points: ArrayLike<number>, { colour, width, dash = [], alpha = 1 }: Stroke): void {
    this.trace(points);
    this.at.setLineDash(dash);
    this.at.globalAlpha = alpha;
    this.at.strokeStyle = colour;
    this.at.lineWidth = width;
    this.at.stroke();
    this.at.globalAlpha = 1;
    this.at.setLineDash([]);
  }

  area(points: ArrayLike<number>, colour: string, alpha: number): void {
    this.trace(points);
    this.at.globalAlpha = alpha;
    this.at.fillStyle = colour;
    this.at.fill();
    this.at.globalAlpha = 1;
  }

  rect(x: number, y: number, width: number, height: number, fill: string | null, stroke?: Stroke): void {
    if (fill) {
      this.at.fillStyle = fill;
      this.at.fillRect(x, y, width, height);
    }
    if (stroke) this.line([x, y, x + width, y, x + width, y + height, x, y + height, x, y], stroke);
  }

  marker(shape: number, x: number, y: number, size: number, fill: string, edge: string): void {
    const corners = shapeOf(shape);
    this.at.beginPath();
    if (corners) for (let i = 0; i < corners.length; i += 2) this.at.lineTo(x + size * corners[i]!, y + size * corners[i + 1]!);
    else this.at.arc(x, y, size, 0, 2 * Math.PI);
    this.at.closePath();
    this.at.fillStyle = fill;
    this.at.fill();
    this.at.strokeStyle = edge;
    this.at.lineWidth = 0.7;
    this.at.stroke();
  }

  text(x: number, y: number, text: string, { colour, size = SIZE, anchor = 'start', bold = false, upright = false }: Text): void {
    this.at.font = `${bold ? 'bold ' : ''}${size}px ${FONT}`;
    this.at.textAlign = anchor === 'middle' ? 'center' : anchor;
    this.at.fillStyle = colour;
    if (!upright) return this.at.fillText(text, x, y);
    this.at.save();
    this.at.translate(x, y);
    this.at.rotate(-Math.PI / 2);
    this.at.fillText(text, 0, 0);
    this.at.restore();
  }

  width(text: string, size = SIZE): number {
    this.at.font = `${size}px ${FONT}`;
    return this.at.measureText(text).width;
  }

  clipped(x: number, y: number, width: number, height: number, draw: () => void): void {
    this.at.save();
    this.at.beginPath();
    this.at.rect(x, y, width, height);
    this.at.clip();
    draw();
    this.at.restore();
  }
}

const escape = (text: string) => text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`).replace(/[\u0000-\u001f\u007f-\u009f\ufffe\uffff]/g, '\ufffd');
const px = (value: number) => String(Number(value.toFixed(2)));

/** Writes SVG; widths of texts come from a canvas. */
export class SvgPen implements Pen {
  private readonly parts: string[] = [];
  private clips = 0;

  constructor(private readonly measure: Pen) {}

  finish(width: number, height: number, title: string): string {
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${px(width)}" height="${px(height)}" viewBox="0 0 ${px(width)} ${px(height)}" role="img" aria-label="${escape(title)}" font-family="${escape(FONT)}">${this.parts.join('\n')}</svg>`;
  }

  private path(points: ArrayLike<number>): string {
    let path = '';
    let open = false;
    for (let i = 0; i < points.length; i += 2) {
      const [x, y] = [points[i]!, points[i + 1]!];
      if (!(Math.abs(x) < 1e6 && Math.abs(y) < 1e6)) {
        open = false;
        continue;
      }
      path += `${open ? 'L' : 'M'}${px(x)} ${px(y)}`;
      open = true;
    }
    return path;
  }

  line(points: ArrayLike<number>, { colour, width, dash, alpha = 1 }: Stroke): void {
    const dashes = dash?.length ? ` stroke-dasharray="${dash.join(' ')}"` : '';
    this.parts.push(`<path d="${this.path(points)}" fill="none" stroke="${colour}" stroke-width="${width}" stroke-linejoin="round" stroke-opacity="${alpha}"${dashes}/>`);
  }

  area(points: ArrayLike<number>, colour: string, alpha: number): void {
    this.parts.push(`<path d="${this.path(points)}" fill="${colour}" fill-opacity="${alpha}"/>`);
  }

  rect(x: number, y: number, width: number, height: number, fill: string | null, stroke?: Stroke): void {
    if (fill) this.parts.push(`<rect x="${px(x)}" y="${px(y)}" width="${px(width)}" height="${px(height)}" fill="${fill}"/>`);
    if (stroke) this.line([x, y, x + width, y, x + width, y + height, x, y + height, x, y], stroke);
  }

  marker(shape: number, x: number, y: number, size: number, fill: string, edge: string): void {
    const corners = shapeOf(shape);
    const look = `fill="${fill}" stroke="${edge}" stroke-width="0.7"`;
    if (!corners) this.parts.push(`<circle cx="${px(x)}" cy="${px(y)}" r="${size}" ${look}/>`);
    else this.parts.push(`<path d="${this.path(corners.map((at, index) => (index % 2 ? y : x) + size * at))}Z" ${look}/>`);
  }

  text(x: number, y: number, text: string, { colour, size = SIZE, anchor = 'start', bold = false, upright = false }: Text): void {
    const turn = upright ? ` transform="rotate(-90 ${px(x)} ${px(y)})"` : '';
    this.parts.push(`<text x="${px(x)}" y="${px(y)}" font-size="${size}" fill="${colour}" text-anchor="${anchor}"${bold ? ' font-weight="bold"' : ''}${turn}>${escape(text)}</text>`);
  }

  width(text: string, size?: number): number {
    return this.measure.width(text, size);
  }

  clipped(x: number, y: number, width: number, height: number, draw: () => void): void {
    const id = `c${++this.clips}`;
    this.parts.push(`<clipPath id="${id}"><rect x="${px(x)}" y="${px(y)}" width="${px(width)}" height="${px(height)}"/></clipPath><g clip-path="url(#${id})">`);
    draw();
    this.parts.push('</g>');
  }
}
