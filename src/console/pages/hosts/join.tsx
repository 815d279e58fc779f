/** Command and QR code that join a new host, and the tokens that exist. */
import { useEffect, useState } from 'preact/hooks';
import { questionOf } from '../../data/api/access.ts';
import { SECRETS } from '../../data/api/resources.ts';
import { ageText } from '../../data/format.ts';
import {
  addressProblem,
  createJoinCommand,
  HOURS,
  type JoinCommand,
  type ListedToken,
  listTokens,
  revokeToken,
  TOKEN_NAMESPACE,
} from '../../data/hosts/join.ts';
import { serverClock } from '../../session/clock.ts';
import { useCommand } from '../../shell/command-line.tsx';
import { showFailure, showToast } from '../../shell/toasts.tsx';
import { api, random } from '../../ui/context.ts';
import { useAccess, useNow } from '../../ui/hooks.ts';
import { Later } from '../../ui/later.tsx';
import { Action } from '../../ui/parts.tsx';

const loadQrCode = () => import('../../widgets/qr-code.tsx');
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const context = {
  api,
  // A token must end at the chosen time of the cluster, not of this computer.
  nowMs: () => serverClock.nowMs(),
  bytes: (length: number) => random.bytes(length),
  sleep,
};

export default function Join() {
  useCommand('hyperedge token create');
  const [hours, setHours] = useState<number>(HOURS[0]);
  const [join, setJoin] = useState<JoinCommand>();
  return (
    <>
      <p>
        The command joins a new host as a node. It contains a secret: whoever has it can join a host until it expires.
        For another master, run <code>hyperedge token create --roles master,etcd,node</code> on a master.
      </p>
      <div class="row">
        <label>
          Valid for{' '}
          <select value={hours} onChange={({ currentTarget }) => setHours(Number(currentTarget.value))}>
            {HOURS.map((each) => (
              <option key={each} value={each}>
                {each} h
              </option>
            ))}
          </select>
        </label>
        <Action
          label="Create a join command"
          question={questionOf('create', SECRETS, TOKEN_NAMESPACE)}
          run={async () => setJoin(await createJoinCommand(context, hours))}
        />
      </div>
      {join === undefined ? null : <Created join={join} onHide={() => setJoin(undefined)} />}
      <Tokens round={join?.tokenId ?? ''} />
    </>
  );
}

function Created({ join, onHide }: { readonly join: JoinCommand; readonly onHide: () => void }) {
  const { command, expires, server, tokenId } = join;
  const problem = addressProblem(server);
  const copy = (): void =>
    void navigator.clipboard.writeText(command).then(() => showToast('The command was copied.'), showFailure);
  return (
    <div class="card">
      {problem === undefined ? null : <p class="warn">{problem}</p>}
      <p>Run this on the new host, as root, until {expires}:</p>
      <pre class="wrap">{command}</pre>
      <Later load={loadQrCode} props={{ text: command, label: 'The join command as a QR code' }} />
      <div class="row">
        <button type="button" onClick={copy}>
          Copy
        </button>
        <button type="button" onClick={onHide}>
          Hide
        </button>
        <Revoke id={tokenId} onDone={onHide} />
      </div>
    </div>
  );
}

function Revoke({ id, onDone }: { readonly id: string; readonly onDone: () => void }) {
  return (
    <Action
      label={`Revoke ${id}`}
      question={questionOf('delete', SECRETS, TOKEN_NAMESPACE)}
      confirm={`The token ${id} is deleted. Hosts that have joined stay in the cluster.`}
      done={`The token ${id} is revoked.`}
      run={async () => {
        await revokeToken(api, id);
        onDone();
      }}
    />
  );
}

function Tokens({ round }: { readonly round: string }) {
  const decision = useAccess(questionOf('list', SECRETS, TOKEN_NAMESPACE));
  const [tokens, setTokens] = useState<readonly ListedToken[]>([]);
  const [again, setAgain] = useState(0);
  const nowMs = useNow();
  useEffect(() => {
    if (decision.allowed) void listTokens(api).then(setTokens, showFailure);
  }, [decision.allowed, round, again]);
  return (
    <>
      <h2>Tokens</h2>
      {decision.allowed ? null : <p class="muted">{decision.reason}</p>}
      {decision.allowed && tokens.length === 0 ? <p>There are none.</p> : null}
      <ul>
        {tokens.map(({ id, created }) => (
          <li key={id}>
            {id}, {ageText(created, nowMs)} old <Revoke id={id} onDone={() => setAgain(again + 1)} />
          </li>
        ))}
      </ul>
    </>
  );
}
