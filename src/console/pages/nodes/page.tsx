import { useMemo } from 'preact/hooks';
import type { Node } from '../../../api/generated/core/v1.ts';
import { NODES } from '../../data/api/resources.ts';
import { ageText, bytesText, coresText, quantityNumber } from '../../data/format.ts';
import { nodeState } from '../../data/hosts/node-state.ts';
import { currentUsage, usageOfNodes } from '../../data/hosts/usage.ts';
import { getCommand } from '../../data/kubectl.ts';
import { useCommand } from '../../shell/command-line.tsx';
import { api } from '../../ui/context.ts';
import { type Column, DataTable } from '../../ui/data-table.tsx';
import { useFeed, useNow, usePoll } from '../../ui/hooks.ts';
import { LostHosts } from '../../ui/lost-hosts.tsx';
import { Link, pathOf, State } from '../../ui/parts.tsx';

const nameOf = ({ metadata }: Node): string => metadata?.name ?? '';
const rolesOf = ({ metadata }: Node): string =>
  Object.keys(metadata?.labels ?? {})
    .filter((label) => label.startsWith('node-role.kubernetes.io/'))
    .map((label) => label.slice('node-role.kubernetes.io/'.length))
    .join(', ');

export default function Nodes() {
  useCommand(getCommand(NODES));
  const snapshot = useFeed(NODES);
  const nowMs = useNow();
  const usage = usePoll((signal) => usageOfNodes(api, signal), 15_000, 'nodes');
  const columns = useMemo<Column<Node>[]>(() => {
    const current = currentUsage(usage ?? [], snapshot.items);
    const of = (node: Node) => current.find(({ name }) => name === nameOf(node));
    const amount = (node: Node, resource: string): number => quantityNumber(node.status?.allocatable?.[resource]) ?? 0;
    return [
      { name: 'Name', text: nameOf, view: (node) => <Link to={pathOf('nodes', nameOf(node))}>{nameOf(node)}</Link> },
      { name: 'State', text: (node) => nodeState(node).text, view: (node) => <State {...nodeState(node)} /> },
      { name: 'Roles', text: rolesOf },
      {
        name: 'CPU',
        text: (node) => of(node)?.cpu ?? -1,
        view: (node) =>
          `${of(node) === undefined ? '–' : coresText(of(node)?.cpu ?? 0)} of ${coresText(amount(node, 'cpu'))}`,
      },
      {
        name: 'Memory',
        text: (node) => of(node)?.memory ?? -1,
        view: (node) =>
          `${of(node) === undefined ? '–' : bytesText(of(node)?.memory ?? 0)} of ${bytesText(amount(node, 'memory'))}`,
      },
      { name: 'Version', text: (node) => node.status?.nodeInfo?.kubeletVersion ?? '' },
      { name: 'Age', text: ({ metadata }) => ageText(metadata?.creationTimestamp, nowMs) },
    ];
  }, [usage, snapshot.items, nowMs]);
  return (
    <>
      <h1>Nodes</h1>
      <LostHosts nodes={snapshot.items} />
      <DataTable label="Nodes" columns={columns} items={snapshot.items} keyOf={nameOf} snapshot={snapshot} />
    </>
  );
}
