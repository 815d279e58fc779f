/** Deletes machines whose Nodes are unhealthy. The plan is made in openshift/machines/core/health-check.ts. */
import { semanticEqual } from '../../../api/meta/equality.ts';
import { objectKey } from '../../../api/meta/object.ts';
import { resources } from '../../../api/resources.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec } from '../../../controllers/framework/framework.ts';
import { ignoreNotFound } from '../../../controllers/framework/ignore-not-found.ts';
import { planHealthCheck } from '../core/health-check.ts';

export const machineHealthCheckController: ControllerSpec = {
  name: 'machinehealthcheck',
  eventSource: 'machinehealthcheck-controller',
  reads: [resources.machineHealthChecks, resources.machines, resources.nodes],
  writes: [resources.machineHealthChecks, resources.machines],
  prepare,
};

function prepare(handle: ControllerHandle): ControllerRun {
  const checks = handle.informer(resources.machineHealthChecks);
  const machines = handle.informer(resources.machines);
  const nodes = handle.informer(resources.nodes);
  const checkClient = handle.writer(resources.machineHealthChecks);
  const client = handle.writer(resources.machines);

  return (scope) => {
    /** Last reported reason for each machine, by key of the check and the machine. A reason is reported only once. */
    const reported = new Map<string, string>();
    const queue = scope.queue(async (key) => {
      const check = checks.get(key);
      if (check === undefined || check.metadata?.deletionTimestamp !== undefined) return;
      const context = handle.plan();
      const namespace = check.metadata?.namespace ?? '';
      const snapshot = { check, machines: machines.list(namespace), node: (name: string) => nodes.get(name) };
      const { remediate, skipped, status, nextMs } = planHealthCheck(snapshot, context);
      if (nextMs !== undefined) queue.addAfter(key, Math.max(0, nextMs - context.nowMs));
      if (!semanticEqual(status, check.status))
        await ignoreNotFound(() => checkClient.update({ ...check, status }, { subresource: 'status' }));
      for (const { machine, why } of remediate) {
        const { name = '', uid } = machine.metadata ?? {};
        const options = uid === undefined ? {} : { preconditions: { uid } };
        await ignoreNotFound(() => client.delete(name, namespace, options));
        handle.recorder.event(
          machine,
          'Normal',
          'MachineDeleted',
          `Machine ${key}/${name} has been remediated by requesting to delete Machine object: ${why}`,
        );
      }
      for (const { machine, why } of skipped) {
        const id = `${key} ${machine.metadata?.uid}`;
        if (reported.get(id) === why) continue;
        reported.set(id, why);
        handle.recorder.event(machine, 'Warning', why === 'RemediationRestricted' ? why : 'SkippedRemediation', why);
      }
      if (skipped.length === 0) for (const id of reported.keys()) if (id.startsWith(`${key} `)) reported.delete(id);
    }, 1);
    const wake = (): void => {
      for (const check of checks.list()) queue.add(objectKey(check));
    };
    scope.onChange(checks, {
      added: (check) => queue.add(objectKey(check)),
      updated: (check) => queue.add(objectKey(check)),
    });
    scope.onChange(machines, { added: wake, updated: wake, deleted: wake });
    scope.onChange(nodes, {
      updated: (node, old) => {
        const facts = ({ status }: typeof node) => status?.conditions?.map((each) => [each.type, each.status]);
        if (!semanticEqual(facts(node), facts(old))) wake();
      },
      deleted: wake,
    });
  };
}
