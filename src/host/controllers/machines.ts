/** Operations of the machine controllers outside the API: join tokens, hosts over SSH, members of the store. */
import { mkdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CodedError } from '../../base/errors.ts';
import { openSsh, type SshSession } from '../../openshift/machines/io/ssh-hosts.ts';
import type { HostHardware } from '../../openshift/machines/kinds/machine-types.ts';
import type { JoinRequest, MachineProvisioner, SshTarget } from '../../openshift/machines/machines-port.ts';
import { pathsBelow } from '../config/paths.ts';
import { sealJoin } from '../join/sealed-join.ts';
import { type CreatedToken, createToken, revokeToken } from '../join/tokens.ts';
import { etcdAccess } from '../store/access.ts';
import { clusterReport, memberNamed } from '../store/administration.ts';

const INSTALL_MS = 300_000;
const RESET_MS = 180_000;
const LIFE_MS = 3_600_000;
const REMOTE = '/usr/local/bin/hyperedge';

/** `configFile`: path of this host's master-config.yaml. The root directory is derived from this path. */
export function machineProvisioner(configFile: string): MachineProvisioner {
  const root = rootOf(configFile);
  const tokenFor = ({ roles, nodeName }: JoinRequest): Promise<CreatedToken> =>
    createToken({ root, roles: roles.join(), ttlMs: LIFE_MS, description: `machine on ${nodeName}` });
  const revoke = async (id: string): Promise<void> => {
    try {
      await revokeToken(root, id);
    } catch (error) {
      if (!(error instanceof CodedError) || error.code !== 'not-found') throw error;
    }
  };
  const within = async <T>(target: SshTarget, use: (session: SshSession) => Promise<T>): Promise<T> => {
    const directory = join(pathsBelow(root).run, 'ssh');
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const session = await openSsh(target, directory);
    try {
      return await use(session);
    } finally {
      await session.close();
    }
  };
  return {
    seal: async (request, sealingKey) => {
      const { token, expires, caHash, server } = await tokenFor(request);
      return { sealed: sealJoin({ server, token, caHash }, sealingKey), tokenId: token.slice(0, 6), expires };
    },
    revoke,
    inspect: (target) => within(target, inspect),
    install: async (target, request) => {
      const created = await tokenFor(request);
      try {
        await within(target, (session) => install(session, request, created));
      } finally {
        await revoke(created.token.slice(0, 6));
      }
    },
    reset: (target, purge) =>
      within(target, async (session) => {
        await session.run(`test ! -x ${REMOTE} || ${REMOTE} reset --force${purge ? ' --purge' : ''}`, {
          timeoutMs: RESET_MS,
        });
      }),
    members: async () => {
      const { members } = await clusterReport(await etcdAccess({ root }));
      return members.map(({ name, role, state }) => ({ name, voter: role !== 'learner', healthy: state === 'ok' }));
    },
    removeMember: async (name) => {
      const admin = (await etcdAccess({ root })).open();
      try {
        const { id } = memberNamed(await admin.members(), name);
        await admin.removeMember(id);
      } finally {
        admin.close();
      }
    },
  };
}

/** The root is the part of the path before `/etc/origin/master/master-config.yaml`. */
function rootOf(configFile: string): string {
  const suffix = '/etc/origin/master';
  const directory = dirname(configFile);
  return directory.endsWith(suffix) ? directory.slice(0, -suffix.length) || '/' : '/';
}

const FACTS = 'uname -m; nproc; cat /proc/sys/kernel/hostname; grep MemTotal /proc/meminfo';

const inspect = async (session: SshSession): Promise<HostHardware> => inspected(await session.run(FACTS));

const MAX_NAME = 63;
const MAX_PROCESSORS = 65_536;

/**
 * Parses the hardware facts that a host printed. The output is untrusted and later shown in its status and on
 * terminals, so control characters are removed. Throws CodedError 'ssh'.
 */
export function inspected(output: string): HostHardware {
  const [arch = '', count = '', hostname = '', memory = ''] = output
    .split('\n', 4)
    .map((line) => line.slice(0, MAX_NAME).replaceAll(/\p{C}/gu, ''));
  if (arch !== process.arch.replace('x64', 'x86_64').replace('arm64', 'aarch64'))
    throw new CodedError('ssh', `host ${hostname}: is ${arch}; the executable of this master is for ${process.arch}`);
  const ramMebibytes = Math.floor(Number(/(\d+) kB/.exec(memory)?.[1] ?? 0) / 1024);
  const processors = /^\d{1,5}$/.test(count) ? Math.min(MAX_PROCESSORS, Math.max(1, Number(count))) : 1;
  return { hostname, ramMebibytes, cpu: { arch, count: processors } };
}

/** Installs hyperedge on a host. A repetition after an interruption updates the existing installation. */
async function install(session: SshSession, request: JoinRequest, created: CreatedToken): Promise<void> {
  const { size: own } = await stat(process.execPath);
  const remote = Number(await session.run(`stat -c %s ${REMOTE} 2>/dev/null || echo 0`));
  if (remote !== own) {
    await session.copy(process.execPath, `${REMOTE}.new`);
    await session.run(`chmod 0755 ${REMOTE}.new && mv ${REMOTE}.new ${REMOTE}`);
  }
  const { server, token, caHash } = created;
  const bootstrap = {
    apiVersion: 'hyperedge.dev/v1',
    kind: 'Bootstrap',
    node: { name: request.nodeName },
    join: { server, token, caHash },
  };
  // The configuration is passed on standard input, so that the process list of the host does not show the token. JSON
  // is valid YAML.
  const file = '/run/hyperedge-bootstrap.yaml';
  const command = `umask 077 && cat >${file} && ${REMOTE} install --config ${file}; code=$?; rm -f ${file}; exit $code`;
  await session.run(command, { input: JSON.stringify(bootstrap), timeoutMs: INSTALL_MS });
}
