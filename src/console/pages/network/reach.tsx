/** Network policies of a namespace as a graph of reachable groups, beside a table of the same connections. */

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Namespace, Pod } from '../../../api/generated/core/v1.ts';
import type { KubeObject, ResourceType } from '../../../api/meta/object.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { countText } from '../../../base/text/count-text.ts';
import { NAMESPACES, PODS, POLICIES } from '../../data/api/resources.ts';
import { kubectl, resourceArgument } from '../../data/kubectl.ts';
import { type GraphEdge, type GraphNode, type PolicyGraph, policyGraph } from '../../data/policies/graph.ts';
import { layoutOf, NODE_HEIGHT, NODE_WIDTH } from '../../data/policies/layout.ts';
import { portsText } from '../../data/policies/port-set.ts';
import type { Snapshot } from '../../data/watch/feed.ts';
import { useCommand } from '../../shell/command-line.tsx';
import { type Column, DataTable } from '../../ui/data-table.tsx';
import { useFeed } from '../../ui/hooks.ts';
import { currentNamespace, NamespaceChoice } from '../../ui/namespaces.tsx';
import { ShortTable } from '../../ui/short-table.tsx';

const MAX_DRAWN = 60;
/** Minimum time between two computations of the graph. */
const PACE_MS = 500;
const MAX_NAME = 32;
const NAME_LABEL = 'kubernetes.io/metadata.name';

export function Reach() {
  const namespace = currentNamespace();
  return (
    <>
      <NamespaceChoice />
      {namespace === '' ? (
        <p>Choose a namespace to see which pods and addresses its network policies let reach each other.</p>
      ) : (
        <ReachOf key={namespace} namespace={namespace} />
      )}
    </>
  );
}

function ReachOf({ namespace }: { readonly namespace: string }) {
  useCommand(kubectl('describe', resourceArgument(POLICIES), '-n', namespace));
  const pods = useReadable(PODS, namespace);
  const policies = useReadable(POLICIES, namespace);
  const namespaces = useFeed(NAMESPACES);
  const areNamesHidden = namespaces.version === 0 && isApiError(namespaces.error, 'Forbidden');
  const parts = [pods.snapshot, policies.snapshot, ...(areNamesHidden ? [] : [namespaces])];
  const version = usePaced(parts.map((each) => each.version).join());
  const graph = useMemo(() => {
    if (parts.some((each) => each.version === 0)) return undefined;
    const known = areNamesHidden ? withoutLabels(pods.snapshot.items) : namespaces.items;
    const objects = { pods: pods.snapshot.items, policies: policies.snapshot.items, namespaces: known };
    return policyGraph(namespace, objects) ?? null;
  }, [namespace, version, areNamesHidden]);
  const failed = parts.find((each) => each.version === 0 && each.error !== undefined);
  if (failed !== undefined) return <p class="bad">{failed.error?.message}</p>;
  if (graph === undefined) return <p class="muted">Pods and policies are being read.</p>;
  if (graph === null)
    return (
      <p class="warn">There are too many pods and policies to compare them on this page. Use the list of policies.</p>
    );
  const { hostNetworkPods, pendingPods } = graph;
  return (
    <>
      {pods.isPartial || policies.isPartial || areNamesHidden ? (
        <p class="warn">
          You may not read all pods, policies and namespaces. Peers in other namespaces are missing or incomplete.
        </p>
      ) : null}
      {hostNetworkPods === 0 ? null : (
        <p>{countText(hostNetworkPods, 'pod')} in the network of the host: no policy applies.</p>
      )}
      {pendingPods === 0 ? null : <p>{countText(pendingPods, 'pod')} without an address yet.</p>}
      <Shown graph={graph} snapshot={pods.snapshot} />
    </>
  );
}

/** Objects of all namespaces; of one namespace if the user may not read all. */
function useReadable<T extends KubeObject>(
  type: ResourceType<T>,
  namespace: string,
): { readonly snapshot: Snapshot<T>; readonly isPartial: boolean } {
  const all = useFeed(type);
  const isPartial = all.version === 0 && isApiError(all.error, 'Forbidden');
  const own = useFeed(isPartial ? type : undefined, { namespace });
  return { snapshot: isPartial ? own : all, isPartial };
}

/**
 * Namespaces of the pods, each with only the label that every namespace has. Used if the user may not list namespaces.
 */
const withoutLabels = (pods: readonly Pod[]): Namespace[] =>
  [...new Set(pods.map(({ metadata }) => metadata?.namespace ?? ''))].map((name) => ({
    metadata: { name, labels: { [NAME_LABEL]: name } },
  }));

/** Returns the value, updated at most every `PACE_MS`. */
function usePaced(value: string): string {
  const [shown, setShown] = useState(value);
  const latest = useRef(value);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  latest.current = value;
  useEffect(() => {
    if (shown === value || timer.current !== undefined) return;
    timer.current = setTimeout(() => {
      timer.current = undefined;
      setShown(latest.current);
    }, PACE_MS);
  }, [shown, value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  return shown;
}

interface Connection {
  readonly from: GraphNode;
  readonly to: GraphNode;
  readonly ports: string;
}

const COLUMNS: readonly Column<Connection>[] = [
  { name: 'From', text: ({ from }) => from.name, view: ({ from }) => <span title={from.detail}>{from.name}</span> },
  { name: 'To', text: ({ to }) => to.name, view: ({ to }) => <span title={to.detail}>{to.name}</span> },
  { name: 'Ports', text: ({ ports }) => ports },
];

const connectionsOf = ({ nodes, edges }: PolicyGraph): readonly Connection[] => {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  return edges.flatMap(({ from: start, to: end, ports }) => {
    const [from, to] = [byId.get(start), byId.get(end)];
    return from === undefined || to === undefined ? [] : { from, to, ports: portsText(ports) };
  });
};

function Shown({ graph, snapshot }: { readonly graph: PolicyGraph; readonly snapshot: Snapshot<unknown> }) {
  const [chosen, setChosen] = useState<string>();
  const connections = useMemo(() => connectionsOf(graph), [graph]);
  const node = graph.nodes.find(({ id }) => id === chosen);
  const rows = node === undefined ? connections : connections.filter(({ from, to }) => from === node || to === node);
  return (
    <>
      <Groups nodes={graph.nodes.filter(({ kind }) => kind === 'workload')} />
      <div class="reach">
        <div>
          <h2>Connections {node === undefined ? null : `of ${node.name}`}</h2>
          {node === undefined ? null : (
            <button type="button" onClick={() => setChosen(undefined)}>
              Show all connections
            </button>
          )}
          <DataTable
            label="Connections"
            columns={COLUMNS}
            items={rows}
            keyOf={({ from, to }) => `${from.id} ${to.id}`}
            snapshot={snapshot}
          />
        </div>
        {graph.nodes.length > MAX_DRAWN ? (
          <p>
            The graph has {graph.nodes.length} groups and peers; at most {MAX_DRAWN} are drawn. The table has all.
          </p>
        ) : (
          <Drawing graph={graph} connections={connections} chosen={node?.id} choose={setChosen} />
        )}
      </div>
    </>
  );
}

function Groups({ nodes }: { readonly nodes: readonly GraphNode[] }) {
  if (nodes.length === 0) return <p class="muted">No pod of the namespace has an address in the pod network.</p>;
  const limits = (names: readonly string[]): string => (names.length === 0 ? 'open' : `limited by ${names.join(', ')}`);
  return (
    <ShortTable
      label="Groups of pods"
      columns={['Group', 'Pods', 'Labels in policies', 'Incoming', 'Outgoing']}
      rows={nodes.map(({ id, name, detail, pods, policies }) => ({
        key: id,
        cells: [name, pods.length, detail, limits(policies.ingress), limits(policies.egress)],
      }))}
    />
  );
}

interface DrawingProps {
  readonly graph: PolicyGraph;
  readonly connections: readonly Connection[];
  readonly chosen: string | undefined;
  readonly choose: (id: string | undefined) => void;
}

function Drawing({ graph, connections, chosen, choose }: DrawingProps) {
  const [focused, setFocused] = useState<string>();
  const { width, height, nodes, edges } = useMemo(() => layoutOf(graph), [graph]);
  const active = focused ?? chosen;
  const isOf = ({ from, to }: GraphEdge): boolean => from === active || to === active;
  return (
    <figure>
      <h2>Graph</h2>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is operated by keyboard */}
      <section class="scroll" aria-label="Graph of connections" tabIndex={0}>
        {/* biome-ignore lint/a11y/useSemanticElements: SVG has no element for a group of controls */}
        <svg viewBox={`0 0 ${width} ${height}`} role="group" aria-label="Groups and peers with their connections">
          <defs>
            <marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
              <path class="tip" d="M0 0 L8 4 L0 8 Z" />
            </marker>
          </defs>
          {edges.map(({ edge, path }) => (
            <path
              key={`${edge.from} ${edge.to}`}
              class={`edge ${active === undefined ? '' : isOf(edge) ? 'active' : 'faded'}`}
              d={path}
              marker-end="url(#tip)"
            />
          ))}
          {nodes.map(({ node, x, y }) => (
            // biome-ignore lint/a11y/useSemanticElements: SVG has no buttons
            <g
              key={node.id}
              class={`end ${node.id === active ? 'active' : ''}`}
              transform={`translate(${x} ${y})`}
              role="button"
              tabindex={0}
              aria-pressed={node.id === chosen}
              aria-label={spoken(node, connections)}
              onFocus={() => setFocused(node.id)}
              onBlur={() => setFocused(undefined)}
              onClick={() => choose(node.id === chosen ? undefined : node.id)}
              onKeyDown={(event) => {
                if (event.key !== 'Enter' && event.key !== ' ') return;
                event.preventDefault();
                choose(node.id === chosen ? undefined : node.id);
              }}
            >
              <rect width={NODE_WIDTH} height={NODE_HEIGHT} rx="5" />
              <text>
                <tspan x="8" y="17">
                  {shortened(node.name)}
                </tspan>{' '}
                <tspan class="note" x="8" y="32">
                  {noteOf(node)}
                </tspan>
              </text>
            </g>
          ))}
          {edges
            .filter(({ edge }) => active !== undefined && isOf(edge))
            .map(({ edge, x, y }) => (
              <text key={`${edge.from} ${edge.to}`} class="note" x={x} y={y} text-anchor="middle">
                {shortened(portsText(edge.ports))}
              </text>
            ))}
        </svg>
      </section>
      <figcaption class="muted">
        Arrows lead to what may be reached. Focus a group to see its ports; choose it to filter the table.
      </figcaption>
    </figure>
  );
}

const shortened = (text: string): string => (text.length <= MAX_NAME ? text : `${text.slice(0, MAX_NAME - 1)}…`);

function noteOf({ kind, pods, policies }: GraphNode): string {
  if (kind === 'addresses') return 'addresses';
  if (kind === 'pods') return countText(pods.length, 'pod');
  const limit = (names: readonly string[]): string => (names.length === 0 ? 'open' : 'limited');
  return `${countText(pods.length, 'pod')} · in ${limit(policies.ingress)} · out ${limit(policies.egress)}`;
}

function spoken(node: GraphNode, connections: readonly Connection[]): string {
  const list = (found: readonly string[]): string => (found.length === 0 ? 'nothing' : found.join(', '));
  const sent = connections.filter(({ from }) => from === node).map(({ to, ports }) => `${to.name} on ${ports}`);
  const received = connections.filter(({ to }) => to === node).map(({ from, ports }) => `${from.name} on ${ports}`);
  // The accessible name begins with the visible text, so that speech input finds the element.
  const name = shortened(node.name);
  const whole = name === node.name ? '' : ` ${node.name}.`;
  return `${name} ${noteOf(node)}.${whole} Reaches ${list(sent)}. Reached by ${list(received)}.`;
}
