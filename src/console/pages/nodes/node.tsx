/** One node: machine configuration, hardware, usage, conditions, pods, cordon and drain. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Node } from '../../../api/generated/core/v1.ts';
import { countText } from '../../../base/text/count-text.ts';
import { questionOf } from '../../data/api/access.ts';
import { BARE_METAL_HOSTS, NODES, PODS } from '../../data/api/resources.ts';
import { quantityNumber, resourceText } from '../../data/format.ts';
import { isLost, isMaster } from '../../data/hosts/contact.ts';
import {
  type DrainPlan,
  type DrainProgress,
  drain,
  planDrain,
  podsOfNode,
  setCordoned,
} from '../../data/hosts/drain.ts';
import { explainNode } from '../../data/hosts/explain-node.ts';
import { NODE_PLOTS, readHistory } from '../../data/hosts/history.ts';
import { bareMetalHostOf, hardwareFacts, hostConfigOf } from '../../data/hosts/host.ts';
import { nodeState } from '../../data/hosts/node-state.ts';
import { describeCommand } from '../../data/kubectl.ts';
import { useCommand } from '../../shell/command-line.tsx';
import type { PageProps } from '../../shell/page.ts';
import { showFailure, showToast } from '../../shell/toasts.tsx';
import { api, clock } from '../../ui/context.ts';
import { useFeed, useNow, useObject } from '../../ui/hooks.ts';
import { LostHosts } from '../../ui/lost-hosts.tsx';
import { Action, Conditions, Dialog, Findings, Missing, State } from '../../ui/parts.tsx';
import { Plots } from '../../ui/plots.tsx';
import { PodTable } from '../../ui/pod-table.tsx';
import { Doctor } from './doctor.tsx';
import { Restart } from './restart.tsx';

const METRICS = NODE_PLOTS.flatMap(({ lines }) => lines.map(({ metric }) => metric));

/** Capacity of the node in the units of the metrics. */
function limitsOf({ status }: Node): Readonly<Record<string, number>> {
  const cpu = quantityNumber(status?.capacity?.['cpu']);
  const memory = quantityNumber(status?.capacity?.['memory']);
  return { ...(cpu === undefined ? {} : { cpu }), ...(memory === undefined ? {} : { memory }) };
}

export default function NodePage({ params }: PageProps) {
  const { name = '' } = params;
  const [command, setCommand] = useState<string>();
  useCommand(command ?? describeCommand(NODES, name));
  const { object: node, snapshot } = useObject(NODES, name);
  const nowMs = useNow();
  if (node === undefined || node === null)
    return <Missing title={`Node ${name}`} object={node} error={snapshot.error} />;
  const isCordoned = node.spec?.unschedulable === true;
  return (
    <>
      <h1>Node {name}</h1>
      <div class="row">
        <State {...nodeState(node)} />
        <Action
          label={isCordoned ? 'Uncordon' : 'Cordon'}
          question={questionOf('patch', NODES, undefined, { name })}
          done={isCordoned ? 'The node takes new pods.' : 'The node takes no new pods.'}
          run={() => setCordoned(api, name, !isCordoned)}
        />
        <Drain name={name} />
      </div>
      <LostHosts nodes={[node]} />
      <Findings findings={explainNode(node)} />
      <MachineConfig node={node} />
      {isLost(node) ? (
        <p class="muted">Doctor, restarts and usage are available when the host answers.</p>
      ) : (
        <>
          <Doctor key={name} name={name} />
          {isMaster(node) ? <Restart key={name} name={name} onCommand={setCommand} /> : null}
        </>
      )}
      <Hardware node={node} />
      {isLost(node) ? null : (
        <Plots
          label="Usage"
          plots={NODE_PLOTS}
          of={name}
          limits={limitsOf(node)}
          read={(since, signal) => readHistory(api, name, { metrics: METRICS, since }, signal)}
        />
      )}
      <Conditions object={node} nowMs={nowMs} />
      <h2>Pods</h2>
      <PodTable scope={{ fieldSelector: `spec.nodeName=${name}` }} />
    </>
  );
}

function MachineConfig({ node }: { readonly node: Node }) {
  const { level, state, current, desired, drift, reason } = hostConfigOf(node);
  return (
    <section aria-label="Machine configuration">
      <h2>Machine configuration</h2>
      <p>
        <State level={level} text={state} /> {reason}
      </p>
      <Facts
        facts={[
          ['Configuration', current],
          ['Desired', desired === current ? '' : desired],
          ['Drift', current === '' ? '' : drift],
        ]}
      />
    </section>
  );
}

function Facts({ facts }: { readonly facts: readonly (readonly [string, string | undefined])[] }) {
  return (
    <dl class="keys">
      {facts
        .filter(([, value]) => value !== undefined && value !== '')
        .map(([key, value]) => (
          <div key={key}>
            <dt>{key}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

function Hardware({ node }: { readonly node: Node }) {
  const info = node.status?.nodeInfo;
  const bareMetal = bareMetalHostOf(node);
  const { items } = useFeed(bareMetal === undefined ? undefined : BARE_METAL_HOSTS, {
    namespace: bareMetal?.namespace,
    fieldSelector: `metadata.name=${bareMetal?.name ?? ''}`,
  });
  const facts: readonly (readonly [string, string | undefined])[] = [
    ...hardwareFacts(items[0]),
    ['Machine ID', info?.machineID],
    ['Firmware ID', info?.systemUUID],
    ['Operating system', info?.osImage],
    ['Kernel', info?.kernelVersion],
    ['Architecture', info?.architecture],
    ['Runtime', info?.containerRuntimeVersion],
    ['Addresses', node.status?.addresses?.map(({ type, address }) => `${type} ${address}`).join(', ')],
    ['Taints', node.spec?.taints?.map(({ key, value, effect }) => `${key}=${value ?? ''}:${effect}`).join(', ')],
    ...Object.entries(node.status?.capacity ?? {}).map(
      ([resource, amount]) => [resource, resourceText(resource, quantityNumber(amount) ?? 0)] as const,
    ),
  ];
  return (
    <section aria-label="Hardware">
      <h2>Hardware</h2>
      <Facts facts={facts} />
    </section>
  );
}

function Drain({ name }: { readonly name: string }) {
  const [plan, setPlan] = useState<DrainPlan>();
  const [progress, setProgress] = useState<DrainProgress>();
  const running = useRef<AbortController>(undefined);
  useEffect(() => () => running.current?.abort(), []);
  const start = async (chosen: DrainPlan): Promise<void> => {
    setPlan(undefined);
    running.current?.abort();
    const controller = new AbortController();
    running.current = controller;
    try {
      await drain(name, chosen, { api, clock, signal: controller.signal, onProgress: setProgress });
      showToast(`Node ${name} is drained.`);
    } catch (error) {
      if (controller.signal.aborted) showToast('The drain was stopped. The node stays cordoned.');
      else showFailure(error);
    } finally {
      setProgress(undefined);
    }
  };
  return (
    <>
      <Action
        label="Drain"
        question={questionOf('create', PODS, '', { subresource: 'eviction' })}
        run={async () => setPlan(planDrain(await podsOfNode(api, name)))}
        {...(progress === undefined ? {} : { disabled: 'The drain is in progress.' })}
      />
      {plan === undefined ? null : (
        <Dialog label={`Drain node ${name}`} onClose={() => setPlan(undefined)}>
          <p>
            {countText(plan.evict.length, 'pod is', 'pods are')} evicted, {countText(plan.stay.length, 'stays', 'stay')}
            . Disruption budgets are respected.
          </p>
          <ul>
            {plan.warnings.map((text) => (
              <li key={text} class="warn">
                {text}
              </li>
            ))}
          </ul>
          <div class="row">
            <button type="button" class="main" onClick={() => void start(plan)}>
              Start the drain
            </button>
            <button type="button" onClick={() => setPlan(undefined)}>
              Cancel
            </button>
          </div>
        </Dialog>
      )}
      {progress === undefined ? null : (
        <div aria-live="polite">
          <label>
            Drain: {progress.gone} of {progress.total} pods have ended{' '}
            <progress max={progress.total || 1} value={progress.gone} />
          </label>{' '}
          <button type="button" onClick={() => running.current?.abort()}>
            Stop the drain
          </button>
          <ul>
            {progress.waiting.map(({ name: pod, text }) => (
              <li key={pod}>
                {pod}: {text}
              </li>
            ))}
          </ul>
        </div>
      )}
    </>
  );
}
