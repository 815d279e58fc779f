/** All functions of expressions in Kubernetes. */
import { FunctionTable } from '../functions.ts';
import { addresses } from './addresses.ts';
import { authorizers } from './authorizer.ts';
import { collections } from './collections.ts';
import { images } from './images.ts';
import { jsonPatches } from './json-patch.ts';
import { kubernetes } from './kubernetes.ts';
import { operators } from './operators.ts';
import { semverComparison, semvers } from './semver.ts';
import { strings } from './strings.ts';
import { times } from './time.ts';

const STANDARD = [
  operators,
  times,
  strings,
  collections,
  kubernetes,
  addresses,
  semvers,
  images,
  jsonPatches,
  authorizers,
] as const;

let table: FunctionTable | undefined;

export function standardFunctions(): FunctionTable {
  table ??= new FunctionTable(STANDARD);
  return table;
}

/** The standard functions and `semver_compare`, for constraints of operators. */
export const constraintFunctions = (): FunctionTable => new FunctionTable([...STANDARD, semverComparison]);
