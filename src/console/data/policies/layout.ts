/** Positions of groups and connections in the drawing: peers on the left, groups of the namespace on the right. */
import type { GraphEdge, GraphNode, PolicyGraph } from './graph.ts';

export interface PlacedNode {
  readonly node: GraphNode;
  readonly x: number;
  readonly y: number;
}

export interface PlacedEdge {
  readonly edge: GraphEdge;
  /** Path data of an SVG element. */
  readonly path: string;
  /** Position of the text. */
  readonly x: number;
  readonly y: number;
}

export interface Layout {
  readonly width: number;
  readonly height: number;
  readonly nodes: readonly PlacedNode[];
  readonly edges: readonly PlacedEdge[];
}

export const NODE_WIDTH = 230;
export const NODE_HEIGHT = 40;
const ROW = 54;
const MIDDLE = 170;
const MARGIN = 4;
const RIGHT = MARGIN + NODE_WIDTH + MIDDLE;
/** Width for the curves of connections between groups of the namespace. */
const BULGE = 90;
/** Distance between the ends of the two connections of a pair of nodes, one per direction. */
const APART = 7;

export function layoutOf({ nodes, edges }: PolicyGraph): Layout {
  const rows = { left: 0, right: 0 };
  const placed = new Map<string, PlacedNode>();
  for (const node of nodes) {
    const side = node.kind === 'workload' ? 'right' : 'left';
    placed.set(node.id, { node, x: side === 'right' ? RIGHT : MARGIN, y: MARGIN + rows[side]++ * ROW });
  }
  return {
    width: RIGHT + NODE_WIDTH + BULGE + MARGIN,
    height: Math.max(rows.left, rows.right, 1) * ROW,
    nodes: [...placed.values()],
    edges: edges.flatMap((edge) => {
      const [from, to] = [placed.get(edge.from), placed.get(edge.to)];
      return from === undefined || to === undefined ? [] : { edge, ...lineOf(from, to) };
    }),
  };
}

function lineOf(from: PlacedNode, to: PlacedNode): Omit<PlacedEdge, 'edge'> {
  const start = from.y + NODE_HEIGHT / 2 - APART;
  const end = to.y + NODE_HEIGHT / 2 + (from.x < to.x ? -APART : APART);
  if (from.x === to.x) {
    const x = from.x + NODE_WIDTH;
    const far = x + 24 + Math.min(BULGE - 30, Math.abs(end - start) / 3);
    return {
      path: `M${x} ${start} C${far} ${start} ${far} ${end} ${x} ${end}`,
      x: far - 20,
      y: start + (end - start) / 4,
    };
  }
  const isRight = from.x < to.x;
  const [left, right] = [MARGIN + NODE_WIDTH, RIGHT];
  const [x1, x2] = isRight ? [left, right] : [right, left];
  const y1 = isRight ? start : from.y + NODE_HEIGHT / 2 + APART;
  const middle = (left + right) / 2;
  return { path: `M${x1} ${y1} C${middle} ${y1} ${middle} ${end} ${x2} ${end}`, x: middle, y: (y1 + end) / 2 };
}
