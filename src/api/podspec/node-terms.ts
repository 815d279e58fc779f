/** Matching of nodes against node selector terms. Source: k8s.io/component-helpers/scheduling/corev1/nodeaffinity. */
import type { Node, NodeSelectorRequirement, NodeSelectorTerm } from '../generated/core/v1.ts';

/** Whether the node meets all requirements of the term. A term without requirements matches no node. */
export function matchesTerm(term: NodeSelectorTerm, node: Node): boolean {
  const expressions = term.matchExpressions ?? [];
  const fields = term.matchFields ?? [];
  if (expressions.length === 0 && fields.length === 0) return false;
  const labels = node.metadata?.labels ?? {};
  return (
    expressions.every((each) => holds(each, Object.hasOwn(labels, each.key) ? labels[each.key] : undefined)) &&
    fields.every((each) => each.key === 'metadata.name' && holds(each, node.metadata?.name))
  );
}

function holds(requirement: NodeSelectorRequirement, value: string | undefined): boolean {
  const values = requirement.values ?? [];
  switch (requirement.operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    case 'Gt':
    case 'Lt': {
      const left = integer(value);
      const right = integer(values[0]);
      if (left === undefined || right === undefined || values.length !== 1) return false;
      return requirement.operator === 'Gt' ? left > right : left < right;
    }
    default:
      return false;
  }
}

function integer(text: string | undefined): bigint | undefined {
  return text !== undefined && /^[+-]?\d{1,19}$/.test(text) ? BigInt(text) : undefined;
}
