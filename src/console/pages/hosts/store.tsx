/** Store: its members, the gossip ring, snapshots, and the conditions of its cluster operator. */

import { useEffect, useRef, useState } from 'preact/hooks';
import { questionOf } from '../../data/api/access.ts';
import { CLUSTER_OPERATORS, NODES } from '../../data/api/resources.ts';
import { ageText, bytesText } from '../../data/format.ts';
import {
  downloadSnapshot,
  failedRead,
  firstStore,
  masterNames,
  memberViews,
  type Read,
  readSnapshots,
  type SnapshotReport,
  saveSnapshot,
} from '../../data/hosts/administration.ts';
import { answering } from '../../data/hosts/contact.ts';
import { OPERANDS } from '../../data/hosts/revisions.ts';
import { localName } from '../../data/pods/transfer.ts';
import { useCommand } from '../../shell/command-line.tsx';
import { showToast } from '../../shell/toasts.tsx';
import { api, clock } from '../../ui/context.ts';
import { useFeed, useNow, useObject, usePoll } from '../../ui/hooks.ts';
import { Action, Conditions, State } from '../../ui/parts.tsx';
import { ShortTable } from '../../ui/short-table.tsx';
import { FlushTimes } from './flush-times.tsx';
import { Hosts } from './revisions.tsx';

const POLL_MS = 10_000;

export default function Store() {
  useCommand('hyperedge members');
  const nowMs = useNow();
  const { items, error } = useFeed(NODES);
  const { object: operator } = useObject(CLUSTER_OPERATORS, 'etcd');
  const masters = masterNames(items);
  const present = masterNames(answering(items));
  return (
    <>
      {present.length > 0 ? (
        <Members masters={present} />
      ) : (
        <p class="muted">
          {masters.length > 0 ? 'No master answers.' : error === undefined ? 'No master is known yet.' : error.message}
        </p>
      )}
      {present.length === 0 ? null : <FlushTimes masters={present} />}
      <h2>Snapshots</h2>
      <p class="muted">A snapshot contains every secret of the cluster: keep the file where only you can read it.</p>
      {masters.map((node) =>
        present.includes(node) ? (
          <Snapshots key={node} node={node} nowMs={nowMs} />
        ) : (
          <p key={node} class="bad">
            {node} does not answer; its snapshots are listed when it does.
          </p>
        ),
      )}
      <Hosts operand={OPERANDS[0]} />
      {operator === undefined || operator === null ? null : <Conditions object={operator} nowMs={nowMs} />}
    </>
  );
}

function Members({ masters }: { readonly masters: readonly string[] }) {
  const read = usePoll((signal) => firstStore(api, clock, masters, signal), POLL_MS, masters.join());
  if (read === undefined) return <p class="muted">The members are being read.</p>;
  if ('error' in read) return <p class="bad">{read.error}</p>;
  const { store, ring } = read.value;
  return (
    <>
      {store.value?.quorum === false ? (
        <State level="bad" text="No majority of the members answers, so nothing can be written." />
      ) : null}
      {store.state === 'known' ? null : <p class="bad">The store: {store.reason}</p>}
      <ShortTable
        label="Members of the store"
        columns={['Member', 'Role', 'State', 'Lag (entries)', 'Flush', 'Size']}
        rows={memberViews(read.value).map(({ name, id, role, level, state, lag, fsync, size }) => ({
          key: id,
          cells: [name, role, <State key="state" level={level} text={state} />, lag, fsync, size],
        }))}
      />
      {ring.state === 'known' ? (
        <ShortTable
          label="Gossip ring"
          columns={['Host', 'Roles', 'State', 'Version']}
          rows={(ring.value ?? []).map(({ name, roles, version, state }) => ({
            key: name,
            cells: [
              name,
              roles.join(', '),
              <State key="state" level={state === 'alive' ? 'good' : state === 'dead' ? 'bad' : 'warn'} text={state} />,
              version,
            ],
          }))}
        />
      ) : (
        <p class="muted">Gossip ring: {ring.reason}</p>
      )}
    </>
  );
}

function Snapshots({ node, nowMs }: { readonly node: string; readonly nowMs: number }) {
  const [turn, setTurn] = useState(0);
  const [progress, setProgress] = useState<string>();
  const running = useRef<AbortController>(undefined);
  useEffect(() => () => running.current?.abort(new Error('the page was closed')), []);
  const read = usePoll<Read<SnapshotReport>>(
    (signal) => readSnapshots(api, node, signal).then((value) => ({ value }), failedRead),
    POLL_MS,
    `${node} ${turn}`,
  );
  const question = questionOf('create', NODES, undefined, { name: node, subresource: 'proxy' });
  const shown = async (work: () => Promise<string>): Promise<void> => {
    try {
      showToast(await work());
    } finally {
      setProgress(undefined);
      setTurn((last) => last + 1);
    }
  };
  const save = (): Promise<void> =>
    shown(async () => {
      setProgress('The snapshot is being saved.');
      const { revision, bytes } = await saveSnapshot(api, node, (done) => setProgress(`${bytesText(done)} saved`));
      return `Revision ${revision} is saved on ${node}, ${bytesText(bytes)}.`;
    });
  const download = (name: string): Promise<void> =>
    shown(async () => {
      const stop = new AbortController();
      running.current = stop;
      const blob = await downloadSnapshot(api, node, name, {
        signal: stop.signal,
        onBytes: (done, total) => setProgress(`${bytesText(done)} of ${bytesText(total)} downloaded`),
      }).finally(() => {
        running.current = undefined;
      });
      const link = document.createElement('a');
      link.href = URL.createObjectURL(blob);
      link.download = localName(name);
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
      return `${name} has ${bytesText(blob.size)}.`;
    });
  if (read === undefined) return <p class="muted">The snapshots of {node} are being read.</p>;
  if ('error' in read)
    return (
      <p class="bad">
        {node}: {read.error}
      </p>
    );
  const { every, keep, scheduledDirectory, isSaving, snapshots } = read.value;
  return (
    <>
      <h3>{node}</h3>
      <p>
        {every === undefined
          ? 'No snapshots are scheduled.'
          : `One is saved every ${every}; the newest ${keep} are kept.`}
        {scheduledDirectory === undefined ? '' : ` Scheduled ones are in ${scheduledDirectory} and not listed here.`}
      </p>
      <div class="row">
        <Action
          label="Save now"
          question={question}
          {...(isSaving ? { disabled: 'A snapshot is being saved.' } : {})}
          run={save}
        />
        <span role="status">{progress ?? (isSaving ? 'A snapshot is being saved.' : '')}</span>
        {running.current === undefined ? null : (
          <button type="button" onClick={() => running.current?.abort(new Error('the download was cancelled'))}>
            Cancel
          </button>
        )}
      </div>
      <ShortTable
        label={`Snapshots of ${node}`}
        columns={['File', 'Revision', 'Age', 'Size', 'Action']}
        rows={snapshots.map(({ name, revision, takenAt, bytes }) => ({
          key: name,
          cells: [
            name,
            revision === 0 ? '' : String(revision),
            ageText(takenAt, nowMs),
            bytesText(bytes),
            <Action
              key="download"
              label="Download"
              question={question}
              confirm={`${name} contains every secret of the cluster.`}
              run={() => download(name)}
            />,
          ],
        }))}
      />
    </>
  );
}
