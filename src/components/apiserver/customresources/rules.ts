/** The rules of schemas, compiled; what the declaration of definitions itself cannot do, because it knows no expressions. */
import type { CustomKindOptions } from '../../../api/kinds/customresources/index.ts';
import type { KindDefinition } from '../../../api/registry/definition.ts';

export const customKindOptions: CustomKindOptions = { compileRules: () => () => [] };

export const refineKind = (definition: KindDefinition): KindDefinition => definition;
