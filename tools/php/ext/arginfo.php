<?php

/**
 * php -n arginfo.php >shmlimit_arginfo.h: what shmlimit.stub.php declares, for the extension. WHY NOT PHP's gen_stub.php: it
 * loads a parser from the network first.
 */

require __DIR__ . '/shmlimit.stub.php';

const KINDS = ['string' => 'STRING', 'int' => 'LONG', 'float' => 'DOUBLE', 'bool' => 'BOOL', 'array' => 'ARRAY', 'callable' => 'CALLABLE', 'void' => 'VOID'];

function kind(ReflectionNamedType $type): string
{
    return ($type->getName() === 'bool' ? '_IS_' : 'IS_') . KINDS[$type->getName()];
}

function nullable(ReflectionNamedType $type): int
{
    return (int) $type->allowsNull();
}

function argument(ReflectionParameter $p): string
{
    $type = $p->getType();
    if ($type instanceof ReflectionUnionType) {
        return sprintf('ZEND_ARG_TYPE_MASK(0, %s, MAY_BE_LONG|MAY_BE_DOUBLE, NULL)', $p->name);
    }
    if ($p->isVariadic()) {
        return sprintf('ZEND_ARG_VARIADIC_OBJ_INFO(0, %s, %s, %d)', $p->name, addslashes($type->getName()), nullable($type));
    }
    if (!$type->isBuiltin()) {
        return sprintf('ZEND_ARG_OBJ_INFO(0, %s, %s, %d)', $p->name, addslashes($type->getName()), nullable($type));
    }
    if (!$p->isDefaultValueAvailable()) {
        return sprintf('ZEND_ARG_TYPE_INFO(0, %s, %s, %d)', $p->name, kind($type), nullable($type));
    }
    $default = $p->getDefaultValue();
    $text = $default === PHP_INT_MAX ? 'PHP_INT_MAX' : ($default === '' ? "''" : json_encode($default));
    return sprintf('ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, %s, %s, %d, "%s")', $p->name, kind($type), nullable($type), $text);
}

function arginfo(string $name, ReflectionMethod $m): string
{
    $type = $m->getReturnType();
    $required = $m->getNumberOfRequiredParameters();
    if ($type === null) {
        $begin = "ZEND_BEGIN_ARG_INFO_EX($name, 0, 0, $required)";
    } elseif ($type->isBuiltin()) {
        $begin = "ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX($name, 0, $required, " . kind($type) . ', ' . nullable($type) . ')';
    } else {
        $begin = "ZEND_BEGIN_ARG_WITH_RETURN_OBJ_INFO_EX($name, 0, $required, " . addslashes($type->getName()) . ', ' . nullable($type) . ')';
    }
    return implode("\n\t", [$begin, ...array_map(argument(...), $m->getParameters())]) . "\nZEND_END_ARG_INFO()\n\n";
}

echo "/* Made by arginfo.php of shmlimit.stub.php. */\n\n";
$classes = array_filter(get_declared_classes(), fn (string $class) => str_starts_with($class, 'Shmlimit\\'));
foreach (array_map(fn (string $class) => new ReflectionClass($class), $classes) as $class) {
    $short = $class->getShortName();
    $c = "Shmlimit_$short";
    $entries = '';
    foreach (array_filter($class->getMethods(), fn (ReflectionMethod $m) => $m->class === $class->name) as $m) {
        echo arginfo("arginfo_class_{$c}_$m->name", $m), "ZEND_METHOD($c, $m->name);\n\n";
        $entries .= "\tZEND_ME($c, $m->name, arginfo_class_{$c}_$m->name, ZEND_ACC_PUBLIC" . ($m->isStatic() ? '|ZEND_ACC_STATIC' : '') . ")\n";
    }
    $parent = $class->getParentClass() ? 'class_entry_' . $class->getParentClass()->name : '';
    echo "static const zend_function_entry class_{$c}_methods[] = {\n$entries\tZEND_FE_END\n};\n\n",
        "static zend_class_entry *register_class_$c(", $parent === '' ? 'void' : "zend_class_entry *$parent", ")\n{\n",
        "\tzend_class_entry ce, *class_entry;\n\n",
        "\tINIT_NS_CLASS_ENTRY(ce, \"Shmlimit\", \"$short\", class_{$c}_methods);\n",
        "\tclass_entry = zend_register_internal_class_ex(&ce, ", $parent ?: 'NULL', ");\n",
        "\tclass_entry->ce_flags |= ZEND_ACC_FINAL",
        str_contains((string) $class->getDocComment(), '@not-serializable') ? '|ZEND_ACC_NOT_SERIALIZABLE' : '', ";\n";
    foreach ($class->getReflectionConstants() as $constant) {
        $value = $constant->getValue() === PHP_INT_MAX ? 'ZEND_LONG_MAX' : $constant->getValue();
        echo "\tzend_declare_class_constant_long(class_entry, ZEND_STRL(\"$constant->name\"), $value);\n";
    }
    foreach (array_filter($class->getProperties(), fn (ReflectionProperty $p) => $p->class === $class->name) as $p) {
        $mask = 'MAY_BE_' . KINDS[$p->getType()->getName()] . (nullable($p->getType()) ? '|MAY_BE_NULL' : '');
        echo "\tdeclare_property(class_entry, ZEND_STRL(\"$p->name\"), $mask);\n";
    }
    echo "\treturn class_entry;\n}\n\n";
}
