/** The steps of a machine's plan, on objects of the cluster and on its host. */
import type { Node, Pod } from 'kubernetes-types/core/v1';
import { sshAddressOf } from '../../api/machines/ssh-address.ts';
import {
  type BareMetalHost,
  HOST_ANNOTATION,
  HOST_FINALIZER,
  MACHINE_FINALIZER,
  MACHINE_GROUP,
  MACHINE_VERSION,
  type Machine,
  type MachinePhase,
  SEALED_ANNOTATION,
  SEALING_ANNOTATION,
} from '../../api/machines/types.ts';
import { isApiError } from '../../api/meta/status.ts';
import { resources } from '../../api/resources.ts';
import { CodedError, messageOf } from '../../base/errors.ts';
import { isOffered } from '../../core/reconcile/machines/host.ts';
import { nodePatch } from '../../core/reconcile/machines/link.ts';
import type { MachineStep } from '../../core/reconcile/machines/machine.ts';
import type { ControllerHandle } from './framework.ts';
import { ignoreNotFound } from './ignore-not-found.ts';
import type { MachineProvisioner, SealedJoin, SshTarget } from './machines-port.ts';

/** A token that ends sooner is replaced. */
const RENEW_MS = 5 * 60_000;

export interface MachineSteps {
  /** The claimed host, on the machine. */
  identify(machine: Machine, host: BareMetalHost): Promise<void>;
  /** Resolves with a phase that only the step can know. */
  execute(step: MachineStep, machine: Machine, host: BareMetalHost | undefined): Promise<MachinePhase | undefined>;
  /** Whether it reaches the host from here: its failures are counted. */
  isRemote(step: MachineStep): boolean;
}

export function createMachineSteps(handle: ControllerHandle, provisioner: MachineProvisioner): MachineSteps {
  const machines = handle.writer(resources.machines);
  const hosts = handle.writer(resources.bareMetalHosts);
  const nodes = handle.writer(resources.nodes);
  const pods = handle.writer(resources.pods);

  const claim = async (host: BareMetalHost, { metadata }: Machine): Promise<void> => {
    const consumerRef = {
      apiVersion: `${MACHINE_GROUP}/${MACHINE_VERSION}`,
      kind: 'Machine',
      name: metadata?.name ?? '',
      namespace: metadata?.namespace ?? '',
      uid: metadata?.uid ?? '',
    };
    const finalizers = [...new Set([...(host.metadata?.finalizers ?? []), HOST_FINALIZER])];
    // Guarded by the version of the copy that was planned with: of two machines one has the host.
    await hosts.update({ ...host, metadata: { ...host.metadata, finalizers }, spec: { ...host.spec, consumerRef } });
  };

  const provision = async (host: BareMetalHost, machine: Machine): Promise<MachinePhase | undefined> => {
    const request = {
      roles: machine.spec?.providerSpec?.value?.roles ?? ['node'],
      nodeName: host.metadata?.name ?? '',
    };
    if (!isOffered(host)) {
      await provisioner.install(await sshTarget(handle, host), request);
      return 'Provisioned';
    }
    const present = sealedOf(host);
    if (present !== undefined && Date.parse(present.expires) - handle.clock.nowMs() > RENEW_MS) return undefined;
    const sealed = await provisioner.seal(request, host.metadata?.annotations?.[SEALING_ANNOTATION] ?? '');
    try {
      const annotations = { ...host.metadata?.annotations, [SEALED_ANNOTATION]: JSON.stringify(sealed) };
      await hosts.update({ ...host, metadata: { ...host.metadata, annotations } });
    } catch (error) {
      await provisioner.revoke(sealed.tokenId);
      throw error;
    }
    if (present !== undefined) await provisioner.revoke(present.tokenId);
    return undefined;
  };

  const withdraw = async (host: BareMetalHost): Promise<void> => {
    const present = sealedOf(host);
    if (present === undefined) return;
    await provisioner.revoke(present.tokenId);
    await patchHost(host, { metadata: { annotations: { [SEALED_ANNOTATION]: null } } });
  };

  const patchHost = (host: BareMetalHost, body: object, subresource?: 'status'): Promise<void> =>
    ignoreNotFound(() =>
      hosts.patch(
        host.metadata?.name ?? '',
        host.metadata?.namespace,
        'merge',
        body,
        subresource === undefined ? {} : { subresource },
      ),
    );

  const link = async (node: Node, machine: Machine, host: BareMetalHost | undefined): Promise<void> => {
    const patch = nodePatch(node, machine, host);
    if (patch !== undefined)
      await ignoreNotFound(() => nodes.patch(node.metadata?.name ?? '', undefined, 'merge', patch));
    if (host !== undefined) await withdraw(host);
  };

  const evict = async (all: readonly Pod[]): Promise<void> => {
    for (const { metadata } of all) {
      const { name = '', namespace, deletionTimestamp } = metadata ?? {};
      if (deletionTimestamp !== undefined) continue;
      const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } };
      try {
        await pods.createSubresource(name, namespace, 'eviction', eviction);
      } catch (error) {
        // 429: a PodDisruptionBudget allows it later.
        if (!isApiError(error, 'NotFound') && !isApiError(error, 'TooManyRequests'))
          handle.log.warn('pod not evicted', { pod: `${namespace}/${name}`, error: messageOf(error) });
      }
    }
  };

  const wipe = async (host: BareMetalHost): Promise<void> => {
    await withdraw(host);
    if (!isOffered(host))
      await provisioner.reset(await sshTarget(handle, host), host.spec?.automatedCleaningMode !== 'disabled');
    await patchHost(host, { status: { provisioning: { state: 'deprovisioning' } } }, 'status');
  };

  const release = async (host: BareMetalHost): Promise<void> => {
    const { consumerRef: _released, ...spec } = host.spec ?? {};
    const finalizers = (host.metadata?.finalizers ?? []).filter((each) => each !== HOST_FINALIZER);
    await ignoreNotFound(() => hosts.update({ ...host, metadata: { ...host.metadata, finalizers }, spec }));
  };

  const finalize = async (machine: Machine): Promise<void> => {
    const finalizers = (machine.metadata?.finalizers ?? []).filter((each) => each !== MACHINE_FINALIZER);
    await ignoreNotFound(() => machines.update({ ...machine, metadata: { ...machine.metadata, finalizers } }));
  };

  const execute = async (
    step: MachineStep,
    machine: Machine,
    host: BareMetalHost | undefined,
  ): Promise<MachinePhase | undefined> => {
    switch (step.do) {
      case 'claim':
        await claim(step.host, machine);
        return undefined;
      case 'provision':
        return provision(step.host, machine);
      case 'link':
        await link(step.node, machine, host);
        return undefined;
      case 'cordon':
        await ignoreNotFound(() =>
          nodes.patch(step.node.metadata?.name ?? '', undefined, 'merge', { spec: { unschedulable: true } }),
        );
        return undefined;
      case 'evict':
        await evict(step.pods);
        return undefined;
      case 'wipe':
        await wipe(step.host);
        return undefined;
      case 'removeMember':
        await provisioner.removeMember(step.name);
        return undefined;
      case 'deleteNode': {
        const { name = '', uid } = step.node.metadata ?? {};
        await ignoreNotFound(() => nodes.delete(name, undefined, uid === undefined ? {} : { preconditions: { uid } }));
        return undefined;
      }
      case 'release':
        await release(step.host);
        return undefined;
      case 'finalize':
        await finalize(machine);
        return undefined;
    }
  };

  return {
    execute,
    isRemote: (step) => (step.do === 'provision' || step.do === 'wipe') && !isOffered(step.host),
    identify: async ({ metadata, spec }, host) => {
      const at = `${host.metadata?.namespace}/${host.metadata?.name}`;
      const providerID = `baremetalhost:///${at}/${host.metadata?.uid}`;
      if (spec?.providerID === providerID && metadata?.annotations?.[HOST_ANNOTATION] === at) return;
      const patch = { metadata: { annotations: { [HOST_ANNOTATION]: at } }, spec: { providerID } };
      await ignoreNotFound(() => machines.patch(metadata?.name ?? '', metadata?.namespace, 'merge', patch));
    },
  };
}

function sealedOf(host: BareMetalHost): SealedJoin | undefined {
  try {
    const text = host.metadata?.annotations?.[SEALED_ANNOTATION];
    return text === undefined ? undefined : (JSON.parse(text) as SealedJoin);
  } catch {
    return undefined;
  }
}

/** Throws CodedError 'bad-credentials' naming the secret and the key. */
export async function sshTarget(handle: ControllerHandle, host: BareMetalHost): Promise<SshTarget> {
  const { bmc } = host.spec ?? {};
  const address = sshAddressOf(bmc?.address ?? '');
  const { name = '', namespace = '' } = host.metadata ?? {};
  if (address === undefined)
    throw new CodedError('bad-credentials', `baremetalhost ${name}: spec.bmc.address: missing`);
  const secretName = bmc?.credentialsName ?? '';
  const { data = {} } = await handle.writer(resources.secrets).get(secretName, namespace);
  const read = (key: string): string => {
    const text = Buffer.from(data[key] ?? '', 'base64')
      .toString('utf8')
      .trim();
    if (text === '')
      throw new CodedError('bad-credentials', `secret ${namespace}/${secretName}: key ${key} is missing`);
    return text;
  };
  const hostKey = read('ssh-hostkey');
  if (
    !/^(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)) [A-Za-z0-9+/=]+( .*)?$/.test(hostKey) ||
    hostKey.includes('\n')
  )
    throw new CodedError(
      'bad-credentials',
      `secret ${namespace}/${secretName}: ssh-hostkey: must be one public key line, such as that of /etc/ssh/ssh_host_ed25519_key.pub`,
    );
  return { address, privateKey: `${read('ssh-privatekey')}\n`, hostKey };
}
