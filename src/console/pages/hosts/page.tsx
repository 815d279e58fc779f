/** Cluster version with its history, configuration pools, and the state of each host. */
import { objectPath } from '../../../client/resource-path.ts';
import { questionOf } from '../../data/api/access.ts';
import { MERGE_PATCH } from '../../data/api/api.ts';
import {
  type AnyObject,
  CLUSTER_VERSIONS,
  CONFIG_POOLS,
  fieldAt,
  listAt,
  NODES,
  textAt,
} from '../../data/api/resources.ts';
import { hostConfigOf } from '../../data/hosts/host.ts';
import { nodeState } from '../../data/hosts/node-state.ts';
import { tookText } from '../../data/hosts/revisions.ts';
import { requestUpdate } from '../../data/hosts/roll-back.ts';
import { desiredVersion, isUpdating } from '../../data/hosts/updates.ts';
import { getCommand } from '../../data/kubectl.ts';
import { poolState } from '../../data/operators.ts';
import { useCommand } from '../../shell/command-line.tsx';
import { api } from '../../ui/context.ts';
import { useFeed, useNow } from '../../ui/hooks.ts';
import { Later } from '../../ui/later.tsx';
import { Lists, listView } from '../../ui/lists.tsx';
import { LostHosts } from '../../ui/lost-hosts.tsx';
import { Action, Conditions, Link, State } from '../../ui/parts.tsx';
import { Progress, RollBack } from './updates.tsx';

const loadConfigurations = () => import('./configurations.tsx');
const loadJoin = () => import('./join.tsx');
const loadRevisions = () => import('./revisions.tsx');
const loadStore = () => import('./store.tsx');
const loadBundle = () => import('../storage/upload.tsx').then(({ UploadBundle }) => ({ default: UploadBundle }));

function PausePool({ pool }: { readonly pool: AnyObject }) {
  const { name = '' } = pool.metadata ?? {};
  const isPaused = fieldAt(pool, 'spec', 'paused') === true;
  return (
    <Action
      label={`${isPaused ? 'Resume' : 'Pause'} ${name}`}
      question={questionOf('patch', CONFIG_POOLS, undefined, { name })}
      confirm={
        isPaused
          ? `The hosts of the pool ${name} get the changes that have waited, one after the other. A host may restart.`
          : `No host of the pool ${name} gets a new configuration until the pool is resumed.`
      }
      done={isPaused ? `The pool ${name} is resumed.` : `The pool ${name} is paused.`}
      run={() =>
        api.json(objectPath(CONFIG_POOLS, name, undefined), {
          method: 'PATCH',
          contentType: MERGE_PATCH,
          body: { spec: { paused: !isPaused } },
        })
      }
    />
  );
}

const VIEWS = [
  { name: 'version', label: 'Version', render: () => <Version /> },
  listView(CONFIG_POOLS, 'Configuration pools', [
    {
      name: 'Updated',
      text: (pool) =>
        `${textAt(pool, 'status', 'updatedMachineCount') || '0'} of ${textAt(pool, 'status', 'machineCount') || '0'}`,
    },
    { name: 'State', text: (pool) => poolState(pool).text, view: (pool) => <State {...poolState(pool)} /> },
    { name: 'Configuration', text: (pool) => textAt(pool, 'status', 'configuration', 'name') },
    { name: 'Actions', text: () => '', view: (pool) => <PausePool pool={pool} /> },
  ]),
  listView(NODES, 'Hosts', [
    { name: 'Node', text: (node) => nodeState(node).text, view: (node) => <State {...nodeState(node)} /> },
    {
      name: 'Configuration state',
      text: (node) => hostConfigOf(node).state,
      view: (node) => <State level={hostConfigOf(node).level} text={hostConfigOf(node).state} />,
    },
    { name: 'Configuration', text: (node) => hostConfigOf(node).current },
    { name: 'Drift', text: (node) => hostConfigOf(node).drift },
    { name: 'Reason', text: (node) => hostConfigOf(node).reason },
  ]),
  { name: 'join', label: 'Join a host', render: () => <Later load={loadJoin} props={{}} /> },
  { name: 'store', label: 'Store', render: () => <Later load={loadStore} props={{}} /> },
  { name: 'upload', label: 'Upload an update', render: () => <Later load={loadBundle} props={{}} /> },
  { name: 'revisions', label: 'Revisions', render: () => <Later load={loadRevisions} props={{}} /> },
  {
    name: 'differences',
    label: 'Configuration differences',
    render: () => <Later load={loadConfigurations} props={{}} />,
  },
];

export default function Hosts() {
  const { items } = useFeed(NODES);
  return (
    <Lists title="Hosts and updates" views={VIEWS}>
      <LostHosts nodes={items} />
    </Lists>
  );
}

function Version() {
  useCommand(getCommand(CLUSTER_VERSIONS));
  const { items, error } = useFeed(CLUSTER_VERSIONS);
  const nowMs = useNow();
  const [version] = items;
  if (version === undefined)
    return (
      <p class="muted">
        {error === undefined ? 'The version is being read, or this profile has none.' : error.message}
      </p>
    );
  const name = version.metadata?.name ?? '';
  const updates = listAt(version, 'status', 'availableUpdates').filter(
    (each) => textAt(each, 'version') !== desiredVersion(version),
  );
  return (
    <>
      <Progress version={version} nowMs={nowMs} />
      <h2>Available updates</h2>
      {updates.length === 0 ? (
        <p>
          No update is available. <Link to="/hosts?view=upload">Upload an update</Link>
        </p>
      ) : null}
      <ul>
        {updates.map((update) => (
          <li key={textAt(update, 'version')}>
            {textAt(update, 'version')}{' '}
            <Action
              label={`Update to ${textAt(update, 'version')}`}
              question={questionOf('patch', CLUSTER_VERSIONS, undefined, { name })}
              confirm={`The hosts are updated to ${textAt(update, 'version')}, one after the other. Applications keep running. A host that does not become healthy returns to its former version.`}
              done="The update is requested."
              run={() =>
                api.json(objectPath(CLUSTER_VERSIONS, name, undefined), {
                  method: 'PATCH',
                  contentType: MERGE_PATCH,
                  body: requestUpdate(textAt(update, 'version'), textAt(update, 'image')),
                })
              }
            />
          </li>
        ))}
      </ul>
      <h2>History</h2>
      <RollBack version={version} />
      <ul>
        {listAt(version, 'status', 'history').map((each, index) => (
          <li key={textAt(each, 'startedTime')}>
            {textAt(each, 'version')}:{' '}
            {textAt(each, 'state') === 'Completed'
              ? 'completed'
              : isUpdating(version) && index === 0
                ? 'in progress'
                : 'not completed'}
            , started {textAt(each, 'startedTime')}
            {textAt(each, 'completionTime') === ''
              ? ''
              : `, took ${tookText(textAt(each, 'startedTime'), textAt(each, 'completionTime'))}`}
          </li>
        ))}
      </ul>
      <Conditions object={version} nowMs={nowMs} />
    </>
  );
}
