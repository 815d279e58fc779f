import type { Command } from '../../command.ts';
import { ROOT_FLAG, stringFlag } from '../../command.ts';
import { checkFormat, OUTPUT_FLAG, printDocument, printTable } from '../../printers.ts';

export const statusCommand: Command = {
  name: 'status',
  usage: '[-o json|yaml|wide]',
  summary: 'show the node and its control-plane components',
  flags: { output: OUTPUT_FLAG, root: ROOT_FLAG },
  arguments: [0, 0],
  examples: [
    ['State of this host', 'status'],
    ['For a program', 'status -o json'],
  ],
  run: async ({ flags, out }) => {
    checkFormat(flags);
    const [{ callControl }, { canonicalRoot, pathsBelow }] = await Promise.all([
      import('../../../host/control/control.ts'),
      import('../../../host/config/settings.ts'),
    ]);
    const socket = pathsBelow(await canonicalRoot(stringFlag(flags, 'root'))).controlSocket;
    const status = await callControl<import('../../../host/control/control.ts').HostStatus>(socket, 'GET', '/status');
    const document = await printDocument(flags, status);
    const code = status.failedRevisions.length === 0 ? 0 : 1;
    if (document !== undefined) {
      out.stdout(document);
      return code;
    }
    const { layoutLine } = await import('../../../host/control/store-layout.ts');
    const store = status.store === undefined ? '' : `${layoutLine(status.store)}\n`;
    const wide = flags['output'] === 'wide';
    out.stdout(
      `node ${status.node} (${status.nodeIp}): ${status.ready ? 'Ready' : `NotReady: ${status.notReady ?? ''}`}\n` +
        `hyperedge ${status.version}, pid ${status.pid}, since ${status.startedAt}, cgroup driver ${status.cgroupDriver}\n` +
        `kubernetes ${status.kubernetes.kubelet}, API server ${status.kubernetes.apiServer ?? 'does not answer'}\n` +
        `kubeconfig ${status.kubeconfig}\n${store}\n`,
    );
    out.stdout(
      printTable(
        ['COMPONENT', 'STATE', 'RESTARTS', 'STARTED', ...(wide ? ['PID'] : [])],
        status.components.map((each) => [
          each.name,
          each.state,
          String(each.restarts),
          each.startedAt,
          ...(wide ? [String(each.pid)] : []),
        ]),
      ),
    );
    for (const each of status.kubernetes.skew) out.stderr(`hyperedge: warning: version skew: ${each}\n`);
    if (code !== 0) {
      const { failureMessage } = await import('../../../host/openshift/revision-archive.ts');
      for (const each of status.failedRevisions) out.stderr(`hyperedge: ${failureMessage(each)}\n`);
    }
    return code;
  },
};
