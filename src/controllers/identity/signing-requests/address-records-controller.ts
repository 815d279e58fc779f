/** Records the proven addresses of nodes (plan in address-records.ts). */
import type { Node } from '../../../api/generated/core/v1.ts';
import {
  APPROVED_ANNOTATION,
  DECLARED_ANNOTATION,
  SOURCE_ANNOTATION,
} from '../../../api/kinds/nodes/nodes/serving-addresses.ts';
import { resources } from '../../../api/resources.ts';
import type { ControllerSpec } from '../../framework/framework.ts';
import { planAddressRecord } from './address-records.ts';
import { EVIDENCE, servingEvidence } from './serving-evidence-controller.ts';

export const addressRecordsController: ControllerSpec = {
  name: 'node-addresses',
  reads: EVIDENCE.reads,
  writes: [resources.nodes, ...EVIDENCE.writes],
  uses: ['ringAddress', ...EVIDENCE.uses],
  prepare: (handle) => {
    const nodes = handle.informer(resources.nodes);
    const evidenceFor = servingEvidence(handle);
    /** Last reported problem by node. */
    const problems = new Map<string, string>();
    return (scope) => {
      const queue = scope.queue(sync);
      // Checks every node, because the record of one node determines which addresses other nodes may have.
      const wakeAll = (): void => {
        for (const { metadata } of nodes.list()) queue.add(metadata?.name ?? '');
      };
      scope.onChange(nodes, {
        added: ({ metadata }) => queue.add(metadata?.name ?? ''),
        updated: (node, old) => {
          if (recordsOf(node) !== recordsOf(old)) wakeAll();
          else if (factsOf(node) !== factsOf(old)) queue.add(node.metadata?.name ?? '');
        },
        deleted: wakeAll,
      });
    };

    async function sync(name: string): Promise<void> {
      const node = nodes.get(name);
      if (node === undefined) {
        problems.delete(name);
        return;
      }
      const evidence = await evidenceFor(node.metadata?.annotations?.[SOURCE_ANNOTATION], true, name);
      const { record, problem } = planAddressRecord(node, evidence, handle.use('ringAddress')(name));
      if (record !== undefined) {
        await handle.writer(resources.nodes).patch(name, undefined, 'merge', {
          metadata: {
            resourceVersion: node.metadata?.resourceVersion,
            annotations: { [APPROVED_ANNOTATION]: record },
          },
        });
        handle.log.info('node addresses recorded', { node: name, addresses: record });
      }
      if (problem === undefined) problems.delete(name);
      else if (problems.get(name) !== problem) {
        problems.set(name, problem);
        handle.log.warn('node address not trusted', { node: name, why: problem });
        const fix = `verify it and run: kubectl annotate node ${name} ${DECLARED_ANNOTATION}=ADDRESS`;
        handle.recorder.event(node, 'Warning', 'AddressNotTrusted', `${problem}; ${fix}`);
      }
    }
  },
};

const recordsOf = ({ metadata }: Node): string =>
  JSON.stringify([APPROVED_ANNOTATION, DECLARED_ANNOTATION].map((each) => metadata?.annotations?.[each]));

const factsOf = ({ metadata, status }: Node): string =>
  JSON.stringify([metadata?.annotations?.[SOURCE_ANNOTATION], status?.addresses]);
